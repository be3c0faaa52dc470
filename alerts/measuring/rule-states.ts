import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import { z } from 'zod'
import { ALERT_MEASURES, type AlertMeasure, type AlertRule, type CalledKind } from '../../schemas/records/alerts.ts'
import { DAY_S } from '../../schemas/units.ts'
import { parseRecord, upkeepKeys } from '../../shared/directory/record.ts'
import { type Command, commitIf } from '../../shared/directory/transaction.ts'
import { type MeasuredKind, measuredKinds } from './measures.ts'
import { conditionSchema } from './transitions.ts'

/** A workspace whose rules nothing has measured for as long begins again. */
const KEPT_S = DAY_S

const stateSchema = z.object({
  /** The last instant that was measured, Unix ms. */
  untilMs: z.number(),
  conditions: z.array(conditionSchema),
  /** Present while it cannot be measured. */
  failing: z.object({ sinceMs: z.number(), atMs: z.number(), reason: z.string() }).optional(),
})
/** What is known of one kind of events that a rule measures. */
export type RuleState = z.infer<typeof stateSchema>

/** The state of what a rule measures, and the field and the text that have it. */
export interface StoredState extends MeasuredKind {
  readonly field: string
  /** Empty if there is none. */
  readonly text: string
  readonly state: RuleState | undefined
}

/** The states of what the rules of a workspace measure, and fields of rules that were changed or removed. */
interface RuleStates {
  readonly current: readonly StoredState[]
  readonly removed: readonly string[]
}

/** Loads the states of what rules measure. */
export async function loadStates(redis: Redis, workspaceId: string, rules: readonly AlertRule[]): Promise<RuleStates> {
  const key = upkeepKeys.measured(workspaceId)
  const texts = await redis.hgetall(key)
  const current = measuredKinds(rules).map((measured): StoredState => {
    const field = fieldOf(measured)
    const text = texts[field] ?? ''
    return { ...measured, field, text, state: text === '' ? undefined : parseRecord(key, text, stateSchema) }
  })
  const known = new Set(current.map(({ field }) => field))
  return { current, removed: Object.keys(texts).filter(field => !known.has(field)) }
}

/** Replaces a state, together with other records, unless it has changed since it was loaded. */
export async function replaceState(
  redis: Redis,
  { workspaceId, field, text }: Pick<StoredState, 'field' | 'text'> & { readonly workspaceId: string },
  state: RuleState,
  others: readonly Command[] = [],
): Promise<boolean> {
  const key = upkeepKeys.measured(workspaceId)
  const commands: Command[] = [
    ['HSET', key, field, JSON.stringify(stateSchema.parse(state))],
    ['EXPIRE', key, KEPT_S],
  ]
  return await commitIf(redis, { guards: [['HGET', key, text, field]], commands: [...commands, ...others] })
}

/** Forgets the states of rules that were changed or removed. */
export async function forgetStates(redis: Redis, workspaceId: string, fields: readonly string[]): Promise<void> {
  if (fields.length > 0) await redis.hdel(upkeepKeys.measured(workspaceId), ...fields)
}

/** A rule that cannot be measured. */
interface FailingRule {
  readonly rule: string
  readonly kind: CalledKind
  readonly since: string
  readonly reason: string
}

/** Returns the rules of a workspace that cannot be measured. */
export async function failingRules(
  redis: Redis,
  workspaceId: string,
  rules: readonly AlertRule[],
): Promise<FailingRule[]> {
  const { current } = await loadStates(redis, workspaceId, rules)
  return current.flatMap(({ rule, kind, state }) => {
    if (state?.failing === undefined) return []
    const { sinceMs, reason } = state.failing
    return [{ rule: rule.name, kind, since: new Date(sinceMs).toISOString(), reason }]
  })
}

/** Returns the field of what a rule measures: another one if the rule is renamed, or measures something else. */
function fieldOf({ rule, kind }: Pick<MeasuredKind, 'rule' | 'kind'>): string {
  const { name, surfaces, services, environments, releases, types } = rule
  const own = (Object.keys(ALERT_MEASURES) as AlertMeasure[]).find(field => ALERT_MEASURES[field] === kind)
  const terms = [name, kind, own && rule[own], surfaces, services, environments, releases, types]
  return createHash('sha256').update(JSON.stringify(terms)).digest('base64url')
}
