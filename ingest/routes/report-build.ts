import { buildReportSchema } from '../../schemas/http/releases/schemas.ts'
import type { BuildReportJob } from '../../schemas/queues/jobs.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import type { BodyHandler, Route } from '../../shared/http/route.ts'
import type { ReleaseKey } from '../../shared/ids/release-key.ts'
import { acceptFrame } from '../commit/frame-sink.ts'
import type { IngestDeps } from '../routes.ts'
import { buildProblem, invalid, refuseBody, slugFault, withRelease } from './build-route.ts'
import { jsonReply } from './surface-route.ts'

const BODY_LIMIT_BYTES = 256 * 1024
const SUCCESS = jsonReply({ ok: true })

/** POST /v3/releases/{releaseSlug}/telemetry (spec 4.8): what a build's upload took, and how it ended. */
export function reportBuildRoute(deps: IngestDeps): Route {
  return {
    method: 'POST',
    path: '/v3/releases/:releaseSlug/telemetry',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    overLimit: { code: 'REQUEST_INVALID', status: 413, message: 'the body is over the limit of 256 KiB' },
    renderProblem: buildProblem,
    accept(head) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, 'accepted', place => takeReport(deps, place, type))
    },
  }
}

function takeReport(deps: IngestDeps, { workspaceId, surfaceId, slug }: ReleaseKey, type: BodyType): BodyHandler {
  return body => {
    const refused = refuseBody(deps, 'build-reports', type)
    if (refused) return refused
    const fault = slugFault(slug)
    if (fault !== undefined) return invalid(fault)
    const parsed = parseJsonBody(buildReportSchema, body)
    if (!parsed.ok) return invalid(parsed.fault)
    const frame = {
      workspaceId,
      surfaceId,
      receivedAtMs: deps.now(),
      contentType: 'application/json',
      contentEncoding: 'identity',
      attributes: JSON.stringify({ slug } satisfies BuildReportJob),
      body: Buffer.from(JSON.stringify(parsed.value)),
    } as const
    return acceptFrame(deps, 'build-reports', frame, SUCCESS, buildProblem)
  }
}
