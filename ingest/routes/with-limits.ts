import type { Problem } from '../../schemas/http/problems.ts'
import {
  ANSWERED,
  type Decision,
  type Header,
  type HeldBody,
  type Reply,
  type RequestHead,
} from '../../shared/http/route.ts'
import type { KeyLimits, LimitedHead } from '../auth/key-limits.ts'

/** Reads what limits depend on. Must be called while the head is readable. */
export function limitedHead(head: Pick<RequestHead, 'header' | 'contentLength'>): LimitedHead {
  return { origin: head.header('origin'), contentLength: head.contentLength }
}

/**
 * Applies the limits of a key to a request: to its head before `decide` is called, and to its body once it is complete
 * (docs/api/credentials.md#quotas). Responses state what is left. Only requests with a key that has limits get here. `onOverQuota`
 * is called for those that are refused for a quota.
 */
export function withLimits(
  { limits, onOverQuota }: { readonly limits: KeyLimits; readonly onOverQuota: () => void },
  head: LimitedHead,
  renderProblem: (problem: Problem) => Reply,
  decide: () => Decision | Promise<Decision>,
): Decision | Promise<Decision> {
  const stated = (reply: Reply) => withHeaders(reply, limits, head)
  const refuse = (problem: Problem) => {
    if (problem.code === 'INGEST_BACKPRESSURE') onOverQuota()
    return stated(renderProblem(problem))
  }
  const refused = limits.refuseHead(head)
  if (refused) return refuse(refused)
  const limitBody = (decision: Decision): Decision => {
    if (typeof decision !== 'function') return stated(decision)
    return (body, request) => {
      const overQuota = limits.refuseBody(body.length)
      if (overQuota) return refuse(overQuota)
      const reply = decision(body, statedRequest(request, stated))
      if (reply === ANSWERED) return reply
      return reply instanceof Promise ? reply.then(stated) : stated(reply)
    }
  }
  const decision = decide()
  return decision instanceof Promise ? decision.then(limitBody) : limitBody(decision)
}

/** Adds what is left of the quotas. A page may read it: the list of headers that it may read can have several lines. */
function withHeaders(reply: Reply, limits: KeyLimits, { origin }: LimitedHead): Reply {
  const own = limits.headers()
  if (own.length === 0) return reply
  const exposed: Header[] =
    origin === undefined ? [] : [['access-control-expose-headers', 'RateLimit, RateLimit-Policy']]
  return { ...reply, headers: [...(reply.headers ?? []), ...own, ...exposed] }
}

/** Returns a request whose answer states what is left. Almost every request is answered so, when its commit has ended. */
function statedRequest(request: HeldBody, stated: (reply: Reply) => Reply): HeldBody {
  return {
    get requestId() {
      return request.requestId
    },
    committed: (outcome, arrivedAtMs, receiptId) => request.committed(outcome, arrivedAtMs, receiptId),
    answer: reply => request.answer(stated(reply)),
    refuse: problem => request.refuse(problem),
    release: () => request.release(),
  }
}
