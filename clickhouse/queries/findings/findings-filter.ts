import { DAY_MS } from '../../../schemas/units.ts'
import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { BoundCondition } from '../../select.ts'
import { findingsOfVariants } from '../attributes/membership.ts'
import { findingSet } from './finding-set.ts'

const BUCKET_MS = 300_000

/** Selects the findings of a list. An undefined field selects all. */
export interface FindingsFilter {
  readonly surfaceId: string | undefined
  readonly serviceName: string | undefined
  /** Start of the period in which an occurrence was received, Unix ms, inclusive. */
  readonly fromMs: number | undefined
  /** End of the period, Unix ms, exclusive. */
  readonly toMs: number | undefined
  /** Text in the first 1,000 characters of type and message of the latest occurrence, in either case. */
  readonly text: string | undefined
  /** The only findings that are listed, or those that are not. */
  readonly chosen?: { readonly are: 'only' | 'not'; readonly findingIds: readonly string[] } | undefined
}

/** Returns the condition on the finding, as `found`, that chooses findings, or undefined if all match. */
export function chosenCondition({ chosen }: FindingsFilter): string | undefined {
  if (chosen === undefined || (chosen.are === 'not' && chosen.findingIds.length === 0)) return undefined
  return `found ${chosen.are === 'only' ? 'IN' : 'NOT IN'} (${findingSet(chosen.findingIds)})`
}

/** Returns the condition on workspace, surface and service, which are equal in all rows of a variant. */
export function ownerCondition({ surfaceId, serviceName }: FindingsFilter): BoundCondition {
  const conditions = [
    'workspace_id = {workspaceId: String}',
    ...(surfaceId === undefined ? [] : ['surface_id = {surfaceId: String}']),
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
  ]
  return { sql: conditions.join(' AND '), params: { surfaceId, serviceName } }
}

/** Bounds within the range of ClickHouse's dates. */
const MIN_MS = 0
const MAX_MS = Date.UTC(2100, 0, 1)

/**
 * Returns the condition on the finding, as `found`, or undefined if any time matches. Occurrences expire only by whole days, so a
 * match stays a match within a day.
 *
 * A row has the first and the last arrival of the occurrences that it counts. If a period spans several days, a day has
 * an occurrence in it exactly when the last arrival of the day is not before the period and the first is not after it.
 * Within a day the same is true for rows of five minutes. Only a period within five minutes reads the occurrences.
 */
export function receivedCondition({ fromMs, toMs }: FindingsFilter, merges: FindingMerges): BoundCondition | undefined {
  if (fromMs === undefined && toMs === undefined) return undefined
  const from = Math.min(Math.max(fromMs ?? MIN_MS, MIN_MS), MAX_MS)
  const to = Math.min(Math.max(toMs ?? MAX_MS, MIN_MS), MAX_MS)
  const isWithin = (unitMs: number) => Math.floor(from / unitMs) === Math.floor(to / unitMs)
  const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
  const select = (table: string, condition: string) =>
    `SELECT variant_id FROM ${table} WHERE workspace_id = {workspaceId: String} AND ${condition}`
  const days = 'day >= {dayOfFrom: Date} AND day <= {dayOfTo: Date}'
  const reaches = `last_received_at >= ${time('from')} AND first_received_at < ${time('to')}`
  const buckets = `received_bucket >= ${time('bucketOfFrom')} AND received_bucket <= ${time('bucketOfTo')}`
  const occurrences = `received_at >= ${time('from')} AND received_at < ${time('to')}`
  const ofBuckets = select('finding_buckets', `${days} AND ${buckets} AND ${reaches}`)
  const found = isWithin(BUCKET_MS)
    ? select('exceptions', `${occurrences} AND variant_id IN (${ofBuckets})`)
    : isWithin(DAY_MS)
      ? ofBuckets
      : select('findings', `${days} AND ${reaches}`)
  return {
    sql: `found IN (
      SELECT id FROM (${findingsOfVariants(found, merges)}))`,
    params: {
      from,
      to,
      dayOfFrom: dateOf(from),
      dayOfTo: dateOf(to),
      bucketOfFrom: Math.floor(from / BUCKET_MS) * BUCKET_MS,
      bucketOfTo: Math.floor(to / BUCKET_MS) * BUCKET_MS,
    },
  }
}

function dateOf(unixMs: number): string {
  return new Date(unixMs).toISOString().slice(0, 10)
}
