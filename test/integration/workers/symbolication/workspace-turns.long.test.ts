import { expect, it } from 'vitest'
import type { SymbolicationRequest } from '../../../../schemas/queues/symbolication.ts'
import { until } from '../../../support/until.ts'
import { type ReleaseOwner, storeRelease, type UploadedMap } from '../../../support/workspaces/store-release.ts'
import { client, enqueue, OWNER, stores, workers } from './fixture.ts'

const OTHER: ReleaseOwner = { workspaceId: 'ws_2', surfaceId: 'srf_2' }
const VERSION = '9.0.0'
/** More jobs than a pool has places. Each takes a parser five seconds. */
const HOSTILE_JOBS = 12

/** Returns the map of a script whose only source is this text. */
function mapOf(name: string, source: string): UploadedMap {
  const map = { version: 3, names: ['f'], sources: [`${name}.ts`], sourcesContent: [source], mappings: 'AAAAA' }
  return { path: `${name}.js.map`, map: Buffer.from(JSON.stringify(map)), chunkUrl: `https://turns.test/${name}.js` }
}

/** Enqueues a stack whose frame is in the script with this name, as a job. */
async function enqueueStack(owner: ReleaseOwner, name: string): Promise<void> {
  const request: SymbolicationRequest = {
    ...{
      kind: 'stack',
      variantId: Buffer.from(name.padEnd(16, '.')).toString('hex'),
      serviceVersion: VERSION,
      debugIds: {},
    },
    ...{ serviceName: 'shop', type: 'Error', message: 'x', fingerprint: '' },
    ...{ stacktrace: `Error: x\n    at f (https://turns.test/${name}.js:1:1)`, occurredAtUnixNano: '1' },
  }
  await enqueue('symbolication', owner, Buffer.from(JSON.stringify(request)))
}

async function resolvedOf({ workspaceId }: ReleaseOwner): Promise<number> {
  const query = `SELECT count() AS n FROM finding_frames
    WHERE workspace_id = '${workspaceId}' AND service_version = '${VERSION}' AND resolved_frame_count > 0`
  const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ n: string }>()
  return Number(row?.n)
}

it('a stack of a workspace with nothing else waits for its turn, and not for the jobs of another before it', async () => {
  const hostile = Array.from({ length: HOSTILE_JOBS }, (_, i) => `h${String.fromCharCode(97 + i)}`)
  // A parser tries each nested arrow function in two ways.
  const slow = `${'f<T>(x=<T>(y)=>'.repeat(20)}0`
  await storeRelease(
    stores,
    OWNER,
    VERSION,
    hostile.map(name => mapOf(name, slow)),
  )
  await storeRelease(stores, OTHER, VERSION, [mapOf('good', 'f()')])
  for (const name of hostile) await enqueueStack(OWNER, name)
  await enqueueStack(OTHER, 'good')
  workers(['symbolication'])
  await until('the stack of the other workspace is resolved', async () => (await resolvedOf(OTHER)) === 1, {
    deadlineMs: 60_000,
  })
  // The one that was being traced, and another if the jobs of the other workspace were taken after that.
  expect(await resolvedOf(OWNER)).toBeLessThanOrEqual(2)
}, 90_000)
