import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateSource } from 'oazapfts'
import { allOperations } from '../../schemas/http/all-operations.ts'
import { buildOpenApiDocument } from '../../schemas/openapi/build-document.ts'

/** File of the generated client. */
export const CLIENT_FILE = new URL('../api/generated/client.ts', import.meta.url)

/** Operations that the console calls. Others are left out, so that their changes do not change the client. */
const CALLED = new Set([
  'listFindings',
  'readFinding',
  'listFindingTraces',
  'listFindingOccurrences',
  'readFindingValues',
  'changeFinding',
  'commentFinding',
  'mergeFindings',
  'splitFinding',
  'listFindingActivity',
  'listTraces',
  'readTrace',
  'readSpans',
  'listLogs',
  'readLogHistogram',
  'listSessions',
  'listReleases',
  'readRelease',
  'listWatermarks',
  'readPipeline',
  'listDeadLetters',
  'readDeadLetter',
  'replayDeadLetters',
  'purgeDeadLetters',
  'listSurfaces',
  'createSurface',
  'deleteSurface',
  'listSurfaceKeys',
  'createSurfaceKey',
  'updateSurfaceKey',
  'revokeSurfaceKey',
  'listWorkspaceKeys',
  'createWorkspaceKey',
  'revokeWorkspaceKey',
  'listMembers',
  'addMember',
  'changeMember',
  'removeMember',
  'readRetention',
  'readAlerts',
  'replaceAlerts',
  'testReceiver',
  'listDeliveries',
  'tryAlertRule',
  'readDelivery',
  'replayDelivery',
  'listChanges',
  'listUsage',
  'listMetrics',
  'readMetricSeries',
  'listServices',
  'listSuggestions',
  'readServiceMap',
  'listVersions',
  'readService',
  'readReplay',
  'readReplayEvents',
  'readSession',
  'readSessionTimeline',
])

/** Returns the source of a client of the API, from its OpenAPI document. Types of problems are left out: all are alike. */
export async function clientSource(): Promise<string> {
  const operations = allOperations({ identityProviders: [] }).filter(({ operationId }) => CALLED.has(operationId))
  if (operations.length !== CALLED.size) {
    const known = operations.map(({ operationId }) => operationId)
    throw new Error(`the document has no operation ${[...CALLED].filter(id => !known.includes(id))}`)
  }
  const document = structuredClone(buildOpenApiDocument(operations))
  for (const methods of Object.values(document.paths)) {
    for (const operation of Object.values(methods) as { responses?: Record<string, unknown> }[]) {
      operation.responses = Object.fromEntries(
        Object.entries(operation.responses ?? {}).filter(([status]) => status.startsWith('2')),
      )
    }
  }
  const directory = await mkdtemp(join(tmpdir(), 'penstock-console-'))
  try {
    const file = join(directory, 'openapi.json')
    await writeFile(file, JSON.stringify(document))
    return await generateSource(file, { optimistic: true, argumentStyle: 'object' })
  } finally {
    await rm(directory, { recursive: true })
  }
}
