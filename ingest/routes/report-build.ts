import { SMALL_BODY_BYTES } from '../../schemas/http/limits.ts'
import { reportBuild } from '../../schemas/http/releases/operations.ts'
import { buildReportSchema } from '../../schemas/http/releases/schemas.ts'
import type { BuildReportJob } from '../../schemas/queues/jobs.ts'
import { type BodyType, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { type Decision, jsonReply, type Route } from '../../shared/http/route.ts'
import type { Sink } from '../commit/sink.ts'
import {
  buildProblem,
  invalid,
  type NamedRelease,
  type ReleaseRouteDeps,
  refuseBody,
  slugFault,
  withRelease,
} from './build-route.ts'

interface Deps extends ReleaseRouteDeps {
  /** The sink of the queue `build-reports`. */
  readonly sink: Sink
  readonly now: () => number
}

const SUCCESS = jsonReply({ ok: true })

/** Records how a build's upload went and how long it took (docs/api/releases.md#build-report). */
export function reportBuildRoute(deps: Deps): Route {
  return operationRoute(reportBuild, {
    renderProblem: buildProblem,
    accept(head, body) {
      const type = bodyTypeOf(head)
      return withRelease(deps, head, body, 'accepted', release => takeReport(deps, release, type))
    },
  })
}

function takeReport({ sink, now }: Deps, release: NamedRelease, type: BodyType): Decision {
  const { workspaceId, surfaceId, slug, isUnknown } = release
  const admitted = sink.admit(release, type.contentLength, SMALL_BODY_BYTES)
  if ('code' in admitted) return buildProblem(admitted)
  return (body, request) => {
    const refused = refuseBody(undefined, type)
    if (refused) return refused
    const fault = slugFault(slug)
    if (fault !== undefined) return invalid(fault)
    const parsed = parseJsonBody(buildReportSchema, body)
    if (!parsed.ok) return invalid(parsed.fault)
    const frame = {
      workspaceId,
      surfaceId,
      receivedAtMs: now(),
      contentType: 'application/json',
      contentEncoding: 'identity',
      attributes: JSON.stringify({ slug, isUnknown } satisfies BuildReportJob),
      body: Buffer.from(JSON.stringify(parsed.value)),
    } as const
    return admitted.accept(frame, SUCCESS, request)
  }
}
