import type { FollowPast } from '../../alerts/trying/follow-past.ts'
import { type TryDeps, tryRule } from '../../alerts/trying/try-rule.ts'
import { tryRule as operation, type Trial, tryRuleSchema } from '../../schemas/http/alerts/trial.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Route } from '../../shared/http/route.ts'
import { bodyRoute } from '../http/body-route.ts'
import type { GuardedRouteDeps } from '../http/guarded-route.ts'
import { invalid, type Outcome, okReply, renderOutcome, replyUnlessUnavailable } from '../http/outcome.ts'
import { withinShares } from '../http/read-shares.ts'
import { faultOfExpression } from './expression-fault.ts'
import { ALERTS } from './resource.ts'

interface Deps extends GuardedRouteDeps, Pick<TryDeps, 'clickhouse' | 'directory'> {
  readonly now: () => number
  /** Slots for reads of many findings. */
  readonly findingLists: Pick<FairSlots, 'run'>
  /** Follows the expression of a rule over metrics. */
  readonly followMetric: FollowPast
}

/** Returns the route that tries a rule on the last seven days (docs/api/alerts.md#try). */
export function tryRuleRoute(deps: Deps): Route {
  const { authenticate, logger, queryTimeoutMs, shares } = deps
  return bodyRoute(authenticate, operation, {
    resource: ALERTS,
    body: tryRuleSchema,
    handle({ caller: { workspaceId }, body: { rule }, exchange, closed }) {
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const answer = async (): Promise<Outcome<Trial>> => {
        const fault = faultOfExpression('rule', rule)
        if (fault !== undefined) return invalid(fault)
        const run = () => tryRule(deps, { workspaceId, rule, toMs: deps.now() }, deadline)
        return { ok: true, value: await deps.findingLists.run(workspaceId, run, deadline) }
      }
      const makeReply = async () => renderOutcome(await answer(), { operation, reply: okReply })
      const shared = { owner: workspaceId, operation, signal: deadline }
      return replyUnlessUnavailable(() => withinShares(shares, shared, makeReply), {
        ...{ operation, unavailable: ALERTS.unavailable, logger, request: exchange, closed },
      })
    },
  })
}
