import type { Operation } from '../../schemas/http/operation.ts'
import { PROBLEMS, type Problem } from '../../schemas/http/problems.ts'
import { drain, exportOtlp, statusOf } from '../../schemas/http/telemetry.ts'
import { SIGNALS } from '../../schemas/queues/names.ts'
import { bodyTypeOf } from '../../shared/http/body-type.ts'
import { statusBytes } from '../../shared/http/grpc/status.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { problemHeaders, type Reply, type Route } from '../../shared/http/route.ts'
import { numberOfRequest } from '../admission/page-request.ts'
import { type Taker, withSurface } from './surface-route.ts'
import { type ExportDeps, type ExportHead, exportTaker } from './take-export.ts'

const PROTOBUF = 'application/x-protobuf'
const JSON_TYPE = 'application/json'

type Render = (problem: Problem) => Reply

/** Returns the route of OTLP exports whose problems are as section 4.1 of the specification states. */
export function drainRoute(deps: ExportDeps): Route {
  return exportRoute(deps, drain, drainProblem, drainProblem)
}

/** Returns the route of OTLP exports at the address that every client knows, with problems as OTLP states. */
export function exportOtlpRoute(deps: ExportDeps): Route {
  return exportRoute(deps, exportOtlp, jsonProblem, protobufProblem)
}

function exportRoute(deps: ExportDeps, operation: Operation, render: Render, renderInProtobuf: Render): Route {
  const takersWith = (form: Render) =>
    new Map<string, Taker<ExportHead>>(SIGNALS.map(signal => [signal, exportTaker(deps, signal, form)]))
  const [takers, takersInProtobuf] = [takersWith(render), takersWith(renderInProtobuf)]
  const unknownSignal: Problem = { code: 'NOT_FOUND', message: `signal must be one of: ${SIGNALS.join(', ')}` }
  return operationRoute(operation, {
    renderProblem: render,
    accept(head, body) {
      const number = numberOfRequest(head)
      const type: ExportHead = number === undefined ? bodyTypeOf(head) : { ...bodyTypeOf(head), number }
      const isProtobuf = type.mediaType === PROTOBUF
      if (isProtobuf) body.renderWith(renderInProtobuf)
      const taker = (isProtobuf ? takersInProtobuf : takers).get(head.param('signal'))
      if (taker === undefined) return (isProtobuf ? renderInProtobuf : render)(unknownSignal)
      return withSurface(deps, head, body, type, taker)
    },
  })
}

/** Returns how problems are rendered with this content type and body. */
function rendering(contentType: string, bodyOf: (problem: Problem) => string | Uint8Array): Render {
  return problem => ({
    status: problem.status ?? PROBLEMS[problem.code].status,
    headers: problemHeaders(problem, contentType),
    body: bodyOf(problem),
  })
}

/** Without `service`, and with `code` only for the two problems that a client retries. */
const drainProblem = rendering(JSON_TYPE, ({ code, message }) =>
  JSON.stringify(
    code === 'INGEST_INFRA_UNAVAILABLE' || code === 'INGEST_BACKPRESSURE' ? { code, message } : { message },
  ),
)
const jsonProblem = rendering(JSON_TYPE, problem => JSON.stringify(statusOf(problem)))
const protobufProblem = rendering(PROTOBUF, problem => statusBytes(statusOf(problem)))
