import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type StoredVariant, selectStoredVariants } from '../../clickhouse/queries/findings/select-stored-variants.ts'
import {
  type FindingRulesAnswer,
  readFindingRules,
  replaceFindingRules,
  replaceRulesSchema,
  TRIED_EXAMPLES,
  TRIED_VARIANTS,
  type TriedRules,
  tryFindingRules,
  tryRulesSchema,
} from '../../schemas/http/findings/rules.ts'
import type { FindingRule } from '../../schemas/records/finding-rules.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { groupStored } from '../../shared/grouping/group-exception.ts'
import { compileRules } from '../../shared/grouping/rules.ts'
import type { Route } from '../../shared/http/route.ts'
import { bodyRoute } from '../http/body-route.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, queryDirectory } from '../http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { type Outcome, okReply, otherRevision, renderOutcome, replyUnlessUnavailable } from '../http/outcome.ts'
import { withinShares } from '../http/read-shares.ts'
import { FINDINGS } from '../http/resource.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingRules' | 'replaceFindingRules' | 'isGrouped'>
}

/** Returns the routes of the rules of grouping (docs/api/findings.md#rules). */
export function findingRuleRoutes(deps: Deps): Route[] {
  return [readRulesRoute(deps), replaceRulesRoute(deps), tryRulesRoute(deps)]
}

function readRulesRoute(deps: Deps): Route {
  return guardedRoute(deps, readFindingRules, {
    resource: FINDINGS,
    async run({ workspaceId }): Promise<Outcome<FindingRulesAnswer>> {
      // In this order, rules that are not applied yet are never shown as applied.
      const found = await queryDirectory(deps.directory.findingRules(workspaceId))
      const isApplied = await queryDirectory(deps.directory.isGrouped(workspaceId))
      if (found === undefined) return { ok: true, value: { revision: 0, rules: [], isApplied } }
      const { revision, changedAt, rules } = found
      return { ok: true, value: { revision, changedAt, rules, isApplied } }
    },
  })
}

function replaceRulesRoute(deps: Deps): Route {
  return creationRoute(deps, replaceFindingRules, {
    resource: FINDINGS,
    body: replaceRulesSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<FindingRulesAnswer>> {
      const { workspaceId } = caller
      const author = authorOf(caller, deps.now())
      const replaced = await queryDirectory(deps.directory.replaceFindingRules({ workspaceId, ...body }, author))
      if (typeof replaced === 'number') return otherRevision(replaced)
      const { revision, changedAt, rules } = replaced
      const isApplied = await queryDirectory(deps.directory.isGrouped(workspaceId))
      return { ok: true, value: { revision, changedAt, rules, isApplied } }
    },
  })
}

function tryRulesRoute({ authenticate, clickhouse, logger, queryTimeoutMs, shares }: Deps): Route {
  return bodyRoute(authenticate, tryFindingRules, {
    resource: FINDINGS,
    body: tryRulesSchema,
    handle({ caller: { workspaceId }, body, exchange, closed }) {
      const operation = tryFindingRules
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const answer = async (): Promise<Outcome<TriedRules>> => {
        const key = { workspaceId, limit: TRIED_VARIANTS }
        const { variants } = await selectStoredVariants(clickhouse, key, deadline)
        return { ok: true, value: tryRules(workspaceId, variants, body.rules) }
      }
      const makeReply = async () => renderOutcome(await answer(), { operation, reply: okReply })
      const shared = { owner: workspaceId, operation, signal: deadline }
      return replyUnlessUnavailable(() => withinShares(shares, shared, makeReply), {
        ...{ operation, unavailable: FINDINGS.unavailable, logger, request: exchange, closed },
      })
    },
  })
}

/** Returns what rules would change. */
function tryRules(workspaceId: string, variants: readonly StoredVariant[], rules: readonly FindingRule[]): TriedRules {
  const compiled = compileRules({ revision: 1, rules: [...rules] })
  const tried = variants.map(variant => ({ variant, ...groupStored({ workspaceId, ...variant }, compiled) }))
  const decided = Map.groupBy(tried, ({ rule }) => rule?.name)
  const moved = tried.filter(({ variant, findingId }) => variant.findingId !== findingId)
  const places = [...Map.groupBy(moved, ({ variant, findingId }) => `${variant.findingId} ${findingId}`).values()]
  const examples = [...places.flatMap(place => place.slice(0, 1)), ...places.flatMap(place => place.slice(1))]
  return {
    stacks: tried.length,
    findingsBefore: new Set(variants.map(({ findingId }) => findingId)).size,
    findingsAfter: new Set(tried.map(({ findingId }) => findingId)).size,
    rules: rules.map(({ name }) => ({ name, stacks: decided.get(name)?.length ?? 0 })),
    moved: moved.length,
    examples: examples.slice(0, TRIED_EXAMPLES).map(({ variant, findingId, rule }) => ({
      type: variant.type,
      message: variant.message.slice(0, 500),
      serviceName: variant.serviceName.slice(0, 1_024),
      ...(rule && { rule: rule.name }),
      findingBefore: variant.findingId,
      findingAfter: findingId,
    })),
  }
}
