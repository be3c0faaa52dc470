import { formatBytes, SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { signSourceMaps } from '../../schemas/http/source-maps/operations.ts'
import { type SignSourceMaps, signSourceMapsSchema } from '../../schemas/http/source-maps/schemas.ts'
import { bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { jsonReply, type Reply, type Route } from '../../shared/http/route.ts'
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
 * (docs/contract.md#sign).
 */
export function signSourceMapsRoute(deps: Deps): Route {
  return operationRoute(signSourceMaps, {
    renderProblem: buildProblem,
    accept(head, arriving) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, arriving, 'refused', release => body => {
        const refused = refuseBody(deps.refuseForMemory(), type)
        if (refused) return refused
        const parsed = parseJsonBody(signSourceMapsSchema, body)
        if (!parsed.ok) return invalid(parsed.fault)
        return refuseFiles(parsed.value) ?? sign(deps, release, parsed.value)
      })
    },
  })
}

function refuseFiles({ files }: SignSourceMaps): Reply | undefined {
  const paths = new Set<string>()
  for (const [i, { path, size }] of files.entries()) {
    if (size > SOURCE_MAP_MAX_BYTES) {
      return refusal('RELEASE_SIGN_FILE_TOO_LARGE', `files.${i}.size must be at most 64 MiB: ${path}`)
    }
    if (paths.has(path)) return invalid(`files.${i}.path is declared twice: ${path}`)
    paths.add(path)
  }
  return undefined
}

async function sign({ signing, logger }: Deps, release: ReleaseKey, { files }: SignSourceMaps): Promise<Reply> {
  let signed: Awaited<ReturnType<typeof signMaps>>
  try {
    signed = await signMaps(signing, release, files)
  } catch (error) {
    logger.warn(errorFields(error), 'source maps could not be signed')
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
