import {
  type SignedFile,
  type SignSourceMaps,
  SOURCE_MAP_MAX_BYTES,
  signSourceMapsSchema,
} from '../../schemas/http/source-maps/schemas.ts'
import { bodyTypeOf } from '../../shared/http/body-type.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import type { Reply, Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { MAX_DECLARED_PATHS } from '../releases/declare-maps.ts'
import { signMaps } from '../releases/sign-maps.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, invalid, refusal, refuseBody, unavailable, withRelease } from './build-route.ts'
import { jsonReply } from './surface-route.ts'

const BODY_LIMIT_BYTES = 256 * 1024

/**
 * POST /v3/releases/{releaseSlug}/source-maps/sign (CONTRACT section 5): declares maps, and says where each is to be put,
 * or that its bytes are here already.
 */
export function signSourceMapsRoute(deps: IngestDeps): Route {
  return {
    method: 'POST',
    path: '/v3/releases/:releaseSlug/source-maps/sign',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    overLimit: {
      code: 'REQUEST_INVALID',
      status: 413,
      message: 'the body is over the limit of 256 KiB; declare fewer files at a time',
    },
    renderProblem: buildProblem,
    accept(head) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, 'refused', place => body => {
        const refused = refuseBody(deps, undefined, type)
        if (refused) return refused
        const parsed = parseJsonBody(signSourceMapsSchema, body)
        if (!parsed.ok) return invalid(parsed.fault)
        return faultOf(parsed.value) ?? sign(deps, place, parsed.value)
      })
    },
  }
}

function faultOf({ files }: SignSourceMaps): Reply | undefined {
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

async function sign(deps: IngestDeps, place: ReleaseKey, { files }: SignSourceMaps): Promise<Reply> {
  let signed: readonly SignedFile[] | undefined
  try {
    signed = await signMaps(deps.builds, place, files)
  } catch (error) {
    deps.logger.warn({ error: describeError(error) }, 'source maps could not be signed')
    return buildProblem(unavailable('the files could not be declared; send the request again'))
  }
  return signed === undefined
    ? invalid(`files must bring a release to at most ${MAX_DECLARED_PATHS} declared paths`)
    : jsonReply({ files: signed })
}
