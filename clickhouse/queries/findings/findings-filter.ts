const BUCKET_MS = 300_000
const DAY_MS = 86_400_000

/** Of which findings a list is; what is undefined does not matter. */
export interface FindingsFilter {
  readonly surfaceId: string | undefined
  readonly serviceName: string | undefined
  /** With an occurrence received from here on, Unix ms. */
  readonly fromMs: number | undefined
  /** And before here. */
  readonly toMs: number | undefined
  /** In the first 1,000 characters of type and message of the latest occurrence, whatever the case. */
  readonly text: string | undefined
}

/** An SQL condition beside the values that it binds. The workspace is bound as `workspaceId`. */
export interface BoundCondition {
  readonly sql: string
  readonly params: Readonly<Record<string, unknown>>
}

/** On the rows of a finding, in which surface and service are always the same. */
export function ownerCondition({ surfaceId, serviceName }: FindingsFilter): BoundCondition {
  const conditions = [
    'workspace_id = {workspaceId: String}',
    ...(surfaceId === undefined ? [] : ['surface_id = {surfaceId: String}']),
    ...(serviceName === undefined ? [] : ['service_name = {serviceName: String}']),
  ]
  return { sql: conditions.join(' AND '), params: { surfaceId, serviceName } }
}

/** What ClickHouse's dates can tell apart, with room. */
const MIN_MS = 0
const MAX_MS = Date.UTC(2100, 0, 1)

/**
 * On `finding_id`; undefined where any time will do. No occurrence goes but with its day: who is let in once stays in.
 *
 * Rows tell the first and the last arrival of what they count. A time that ends on another day than it begins has an
 * occurrence of a day exactly when the day's last is not before it and the day's first not after it; within a day the same
 * holds for rows of five minutes. Only a time within five minutes is asked of the occurrences themselves.
 */
export function receivedCondition({ fromMs, toMs }: FindingsFilter): BoundCondition | undefined {
  if (fromMs === undefined && toMs === undefined) return undefined
  const from = Math.min(Math.max(fromMs ?? MIN_MS, MIN_MS), MAX_MS)
  const to = Math.min(Math.max(toMs ?? MAX_MS, MIN_MS), MAX_MS)
  const isWithin = (unitMs: number) => Math.floor(from / unitMs) === Math.floor(to / unitMs)
  const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
  const select = (table: string, condition: string) =>
    `SELECT finding_id FROM ${table} WHERE workspace_id = {workspaceId: String} AND ${condition}`
  const days = 'day >= {dayOfFrom: Date} AND day <= {dayOfTo: Date}'
  const reaches = `last_received_at >= ${time('from')} AND first_received_at < ${time('to')}`
  const buckets = `received_bucket >= ${time('bucketOfFrom')} AND received_bucket <= ${time('bucketOfTo')}`
  const occurrences = `received_at >= ${time('from')} AND received_at < ${time('to')}`
  const ofBuckets = select('finding_buckets', `${days} AND ${buckets} AND ${reaches}`)
  const found = isWithin(BUCKET_MS)
    ? select('exceptions', `${occurrences} AND finding_id IN (${ofBuckets})`)
    : isWithin(DAY_MS)
      ? ofBuckets
      : select('findings', `${days} AND ${reaches}`)
  return {
    sql: `finding_id IN (${found})`,
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
