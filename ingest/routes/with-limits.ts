import type { Problem } from '../../schemas/http/problems.ts'
import type { BodyHandler, Decision, Reply, RequestHead } from '../../shared/http/route.ts'
import type { KeyLimits, LimitedHead } from '../auth/key-limits.ts'

/** Reads what limits depend on. Must be called while the head is readable. */
export function limitedHead(head: Pick<RequestHead, 'header' | 'contentLength'>): LimitedHead {
  return { origin: head.header('origin'), contentLength: head.contentLength }
}

/**
 * Applies the limits of a key to a request: to its head before `decide` is called, and to its body once it is complete
 * (docs/api/credentials.md#quotas). Only requests with a key that has limits get here.
 */
export function withLimits(
  limits: KeyLimits,
  head: LimitedHead,
  renderProblem: (problem: Problem) => Reply,
  decide: () => Decision | Promise<Decision>,
): Decision | Promise<Decision> {
  const refused = limits.refuseHead(head)
  if (refused) return renderProblem(refused)
  const decision = decide()
  return decision instanceof Promise
    ? decision.then(decided => limitBody(limits, renderProblem, decided))
    : limitBody(limits, renderProblem, decision)
}

function limitBody(limits: KeyLimits, renderProblem: (problem: Problem) => Reply, decision: Decision): Decision {
  if (typeof decision !== 'function') return decision
  const handler: BodyHandler = (body, request) => {
    const refused = limits.refuseBody(body.length)
    return refused ? renderProblem(refused) : decision(body, request)
  }
  return handler
}
