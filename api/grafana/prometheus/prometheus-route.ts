import { PromqlError } from '../../../promql/promql-error.ts'
import { FORM } from '../../../schemas/http/grafana/prometheus.ts'
import { prometheusProblem, UNPROCESSABLE } from '../../../schemas/http/grafana/prometheus-schemas.ts'
import type { PermittedOperation } from '../../../schemas/http/operation.ts'
import { PROBLEMS, type Problem } from '../../../schemas/http/problems.ts'
import { bodyTypeFault, bodyTypeOf } from '../../../shared/http/body-type.ts'
import { operationRoute } from '../../../shared/http/operation-route.ts'
import { type IdentifiedRequest, problemHeaders, type Reply, type Route } from '../../../shared/http/route.ts'
import type { Access } from '../../auth/caller.ts'
import { presentedBy } from '../../auth/protected-resource.ts'
import { type GuardedRouteDeps, guardOf, namesNothing, pathParameters } from '../../http/guarded-route.ts'
import { type Outcome, okJson, okReply, replyUnlessUnavailable } from '../../http/outcome.ts'
import { withinShares } from '../../http/read-shares.ts'
import { METRICS, type MetricReads, readWithinLimits } from '../../metrics/resource.ts'

/** Dependencies of each route. */
export interface PrometheusDeps extends GuardedRouteDeps {
  readonly metricReads: MetricReads
}

/** A request whose caller is accepted. */
export interface PrometheusRequest {
  readonly workspaceId: string
  /** Parameters of the query or of the form. */
  readonly parameters: URLSearchParams
  /** Returns a parameter of the path. */
  readonly param: (name: string) => string
  readonly deadline: AbortSignal
}

/** Data of a response, and what its reader should know. */
export interface PrometheusAnswer {
  readonly data: unknown
  readonly warnings?: readonly string[]
}

/** Computes an answer, or the JSON of one. Throws a PromqlError for a request that is refused. */
type Run = (request: PrometheusRequest) => Promise<PrometheusAnswer | Uint8Array> | PrometheusAnswer

/**
 * Returns a route of the interface of Prometheus. The checks are those of a guarded route. Every refusal has the form that
 * clients of Prometheus read. Parameters may be repeated, and are in the query or, with POST, in a form.
 */
export function prometheusRoute(deps: PrometheusDeps, operation: PermittedOperation, run: Run): Route {
  const guard = guardOf(operation, METRICS)
  const paramsOf = pathParameters(operation)
  const renderProblem = prometheusReply
  return operationRoute(operation, {
    renderProblem,
    async accept(head, exchange) {
      const closed = head.closed()
      const param = paramsOf(head)
      const type = bodyTypeOf(head)
      const query = new URLSearchParams(head.rawQuery())
      const presented = presentedBy(head)
      const check = async (): Promise<Access> => deps.authenticate(presented, guard, undefined, exchange)
      const accepted = await check()
      if (!accepted.ok) return renderProblem(accepted.problem)
      if (namesNothing(operation, param)) return renderProblem(METRICS.notFound)
      const answer = ({ caller: { workspaceId } }: Access & { ok: true }, parameters: URLSearchParams) =>
        answerWithinShares(deps, operation, { request: { workspaceId, parameters, param }, run, exchange, closed })
      if (operation.body === undefined) return answer(accepted, query)
      exchange.belongsTo(accepted.caller.workspaceId)
      return async bytes => {
        const fault = bodyTypeFault(type, [FORM])
        if (fault) return renderProblem(fault)
        const parameters = new URLSearchParams(bytes.toString())
        const access = await check()
        return access.ok ? answer(access, parameters) : renderProblem(access.problem)
      }
    },
  })
}

interface Pending {
  readonly request: Omit<PrometheusRequest, 'deadline'>
  readonly run: Run
  readonly exchange: IdentifiedRequest
  readonly closed: AbortSignal
}

/** Refusal of a query that reads more points than it may. */
const TOO_MANY_POINTS: Problem = {
  code: 'REQUEST_INVALID',
  status: UNPROCESSABLE,
  message:
    'query processing would load too many samples into memory in query execution: request a shorter range, a longer step or fewer series',
}

async function answerWithinShares(
  { shares, logger, queryTimeoutMs, metricReads }: PrometheusDeps,
  operation: PermittedOperation,
  { request, run, exchange, closed }: Pending,
): Promise<Reply> {
  const { workspaceId } = request
  const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
  const compute = async (): Promise<Outcome<Reply>> => {
    try {
      const answer = await run({ ...request, deadline })
      return {
        ok: true,
        value: answer instanceof Uint8Array ? okJson(answer) : okReply({ status: 'success', ...answer }),
      }
    } catch (error) {
      if (!(error instanceof PromqlError)) throw error
      const status = error.type === 'execution' ? { status: UNPROCESSABLE } : {}
      return { ok: true, value: prometheusReply({ code: 'REQUEST_INVALID', message: error.message, ...status }) }
    }
  }
  const makeReply = async () => {
    const outcome = await readWithinLimits(metricReads, { workspaceId, deadline }, '', compute)
    return outcome.ok ? outcome.value : prometheusReply(TOO_MANY_POINTS)
  }
  const reply = await replyUnlessUnavailable(
    () => withinShares(shares, { owner: workspaceId, operation, signal: deadline }, makeReply),
    { operation, unavailable: METRICS.unavailable, logger, request: exchange, closed },
  )
  return reply.status === 429 || reply.status === 503 ? inPrometheusForm(reply) : reply
}

/** Returns the reply of a problem. */
function prometheusReply(problem: Problem): Reply {
  const status = problem.status ?? PROBLEMS[problem.code].status
  return {
    status,
    headers: problemHeaders(problem),
    body: JSON.stringify(prometheusProblem(problem, status)),
  }
}

/** Returns a reply in the common form of problems in that of Prometheus. */
function inPrometheusForm(reply: Reply): Reply {
  return { ...reply, body: JSON.stringify(prometheusProblem(JSON.parse(String(reply.body)))) }
}
