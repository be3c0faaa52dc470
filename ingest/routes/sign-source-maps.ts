import { setImmediate as nextTurn } from 'node:timers/promises'
import { z } from 'zod'
import { formatBytes, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { signSourceMaps } from '../../schemas/http/source-maps/operations.ts'
import {
  declaredFileSchema,
  type SignSourceMaps,
  signSourceMapsSchema,
} from '../../schemas/http/source-maps/schemas.ts'
import { bodyTypeOf } from '../../shared/http/body-type.ts'
import { checkValue } from '../../shared/http/check-value.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { type IdentifiedRequest, jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { overUploadBudget } from '../../shared/queue/upload-budget.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import { MAX_DECLARED_PATHS, MAX_STAGED_BYTES } from '../releases/declare-maps.ts'
import { type SignMapsDeps, signMaps } from '../releases/sign-maps.ts'
import {
  buildProblem,
  invalid,
  type ReleaseRouteDeps,
  refusal,
  refuseBody,
  unavailable,
  withRelease,
} from './build-route.ts'

interface Deps extends ReleaseRouteDeps {
  /** Returns INGEST_BACKPRESSURE when Redis is nearly full. */
  readonly refuseForMemory: () => Problem | undefined
  readonly signing: SignMapsDeps
}

/**
 * Declares source maps. The reply has an address to upload each map to, or states that its bytes are stored already
 * (docs/api/releases.md#sign).
 */
export function signSourceMapsRoute(deps: Deps): Route {
  return operationRoute(signSourceMaps, {
    renderProblem: buildProblem,
    accept(head, arriving) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, arriving, 'refused', release => (body, held) => {
        const refused = refuseBody(deps.refuseForMemory(), type)
        if (refused) return refused
        const parsed = parseJsonBody(uncheckedSchema, body)
        return parsed.ok ? signFiles(deps, release, parsed.value.files, held) : invalid(parsed.fault)
      })
    },
  })
}

/** The body with files that are not checked yet. */
const uncheckedSchema = signSourceMapsSchema.extend({ files: z.array(z.unknown()).min(1) })

/** Files that are checked in one turn of the event loop. They take about half a millisecond. */
const FILES_PER_TURN = 500

/**
 * Checks files until the first fault, in turns, and signs them. A check of the whole body looks at every file and keeps all
 * faults: 87,000 empty objects in 256 KiB held up all other requests for 0.3 s.
 */
async function signFiles(
  deps: Deps,
  release: ReleaseKey,
  entries: readonly unknown[],
  request: IdentifiedRequest,
): Promise<Reply> {
  const files: SignSourceMaps['files'] = []
  const paths = new Set<string>()
  for (const [i, entry] of entries.entries()) {
    if (i > 0 && i % FILES_PER_TURN === 0) await nextTurn()
    const file = checkValue(declaredFileSchema, entry, ['files', i])
    if (!file.ok) return invalid(file.fault)
    const { path, size } = file.value
    if (size > SOURCE_MAP_MAX_BYTES) {
      return refusal('RELEASE_SIGN_FILE_TOO_LARGE', `files.${i}.size must be at most 64 MiB: ${path}`)
    }
    if (paths.has(path)) return invalid(`files.${i}.path is declared twice: ${path}`)
    paths.add(path)
    files.push(file.value)
  }
  return sign(deps, release, files, request)
}

async function sign(
  { signing, logger }: Deps,
  release: ReleaseKey,
  files: SignSourceMaps['files'],
  request: IdentifiedRequest,
): Promise<Reply> {
  let signed: Awaited<ReturnType<typeof signMaps>>
  try {
    signed = await signMaps(signing, release, files)
  } catch (error) {
    logger.warn({ requestId: request.requestId, ...errorFields(error) }, 'source maps could not be signed')
    return buildProblem(unavailable('the files could not be declared; send the request again'))
  }
  if (signed === 'over_budget') return buildProblem(overUploadBudget('files'))
  return typeof signed === 'string' ? invalid(LIMITS[signed]) : jsonReply({ files: signed })
}

const LIMITS = {
  too_many_paths: `files must bring a release to at most ${MAX_DECLARED_PATHS} declared paths`,
  too_many_bytes:
    `files must bring the workspace to at most ${formatBytes(MAX_STAGED_BYTES)} of maps that are declared and not completed:` +
    ' complete their releases, or wait for 24 hours',
} as const
