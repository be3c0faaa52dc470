import type { ClickHouseSettings } from '@clickhouse/client'
import { DAY_MS, HOUR_MS, MIB, MINUTE_MS } from '../../../schemas/units.ts'
import type { FindingMerges } from '../../../shared/directory/findings/finding-merges.ts'
import type { ClickHouseClient } from '../../client.ts'
import { type Select, selectRows } from '../../select.ts'
import { findingsOfVariants } from '../attributes/membership.ts'
import { WideningWindows } from '../widening-windows.ts'
import { chosenCondition, type FindingsFilter, ownerCondition, receivedCondition } from './findings-filter.ts'
import { FINDINGS_SETTINGS } from './findings-settings.ts'
import type { FindingsSnapshot } from './select-findings-snapshot.ts'

/** Position of a finding in a list: its latest arrival in the snapshot of the list. */
export interface ArrivalKey {
  readonly id: string
  /** Unix ms, decimal. */
  readonly storedMs: string
  readonly receivedMs: string
}

/** Selects a page of a list of findings. */
interface FindingsPageKey {
  readonly workspaceId: string
  readonly snapshot: FindingsSnapshot
  readonly filter: FindingsFilter
  readonly merges: FindingMerges
  readonly limit: number
  /** The last entry of the previous page. */
  readonly after: ArrivalKey | undefined
}

const BUCKET_MS = 300_000
/**
 * Time after which an insert is visible in every table or never. It is twice the time that a worker waits for an insert
 * (INSERT_TIMEOUT_MS).
 */
const SETTLED_AFTER_MS = 120_000

/**
 * The index `by_stored_at` skips whole parts before any of their columns is opened. A query can have the merges of a workspace, of
 * 620 KB, three times.
 */
const SETTINGS: ClickHouseSettings = {
  ...FINDINGS_SETTINGS,
  max_query_size: String(4 * MIB),
  use_skip_indexes_on_data_read: 0,
}

/** Periods before the start of a page, tried in this order. If one contains a full page, older arrivals are not read. */
const WINDOWS_MS = [5 * MINUTE_MS, HOUR_MS, DAY_MS]
const windows = new WideningWindows()

/**
 * Returns the findings of a page, the latest arrival first. All pages of a list are read from the same snapshot. Arrivals stored
 * long before the snapshot do not change any more and come from `findings`. Arrivals stored shortly before it come from the blocks
 * of `exceptions`. If a variant has arrived again since the snapshot, `findings` has lost the earlier arrival, and it comes from
 * `finding_buckets`. These tables have a row per variant and day or five minutes, so the number of rows does not grow with the rate
 * of exceptions. Most variants that arrived shortly before the snapshot have that arrival as their latest. Only the others are
 * looked up in `finding_buckets`, of which a day has up to 288 rows a variant.
 *
 * A variant that moves while a list is read is on the next pages in the finding that it belongs to then.
 */
export async function selectFindingsPage(
  client: ClickHouseClient,
  page: FindingsPageKey,
  signal: AbortSignal,
): Promise<ArrivalKey[]> {
  const { filter } = page
  if (filter.chosen?.are === 'only' && filter.chosen.findingIds.length === 0) return []
  const beginsAt = Math.min(Number(page.after?.storedMs ?? page.snapshot.asOfMs), settledMsOf(page.snapshot))
  // A text is looked for in all days anyway.
  const lengths = filter.text === undefined ? WINDOWS_MS : []
  return windows.find({
    key: keyOf(page),
    starts: [...lengths.map(length => Math.max(beginsAt - length, 0)), 0],
    limit: page.limit,
    // An arrival within the window is later than all arrivals before the window.
    select: since => selectStoredSince(client, page, since, signal),
    timeOf: ({ storedMs }) => Number(storedMs),
  })
}

/** Returns what the number of findings in a window depends on, but for the times. */
function keyOf({ workspaceId, limit, filter }: FindingsPageKey): string {
  const { surfaceId, serviceName, text, chosen, fromMs, toMs } = filter
  const isBounded = [fromMs, toMs].map(time => time !== undefined)
  return JSON.stringify([workspaceId, limit, surfaceId, serviceName, text, chosen?.are, ...isBounded])
}

/** A first page is read so shortly after its snapshot that hardly any finding has arrived again. */
async function selectStoredSince(
  client: ClickHouseClient,
  page: FindingsPageKey,
  sinceMs: number,
  signal: AbortSignal,
): Promise<ArrivalKey[]> {
  const parts = queryParts(page, sinceMs)
  const { params } = parts
  const read = <T>(query: string) => selectRows<T>(client, { query, params, signal, settings: SETTINGS })
  if (page.after === undefined) {
    const found = await read<ArrivalKey & { readonly isLost: 0 | 1 }>(queryWithoutBuckets(parts))
    if (found[0]?.isLost !== 1) return found.map(({ id, storedMs, receivedMs }) => ({ id, storedMs, receivedMs }))
  }
  return read<ArrivalKey>(queryWithBuckets(parts))
}

/** Parts of the two queries of a page. */
interface QueryParts {
  /** The condition on the owner of a variant. */
  readonly owner: string
  /** The last arrival of each variant in the blocks of the snapshot, as variant_id and arrival. */
  readonly arrivals: string
  /** The findings of the variants that arrived in the window, as variant_id and id. */
  readonly memberships: string
  readonly key: string
  readonly condition: string
  readonly order: string
  readonly params: Select['params']
}

const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`

function queryParts(page: FindingsPageKey, sinceMs: number): QueryParts {
  const { workspaceId, snapshot, filter, merges, limit, after } = page
  const owner = ownerCondition(filter)
  const received = receivedCondition(filter, merges)
  const chosen = chosenCondition(filter)
  const memberships = findingsOfVariants(
    `SELECT variant_id FROM finding_variants
     WHERE workspace_id = {workspaceId: String} AND last_stored_at >= ${time('sinceMs')}`,
    merges,
  )
  const conditions = [
    ...(after ? ['(storedMs, receivedMs, id) < ({storedMs: Int64}, {receivedMs: Int64}, {id: String})'] : []),
    ...(received === undefined ? [] : [received.sql]),
    ...(chosen === undefined ? [] : [chosen]),
    ...(filter.text === undefined ? [] : [textCondition(owner.sql, merges)]),
  ]
  const { block, blocks, asOfMs } = snapshot
  return {
    owner: owner.sql,
    arrivals: `SELECT variant_id, max(tuple(stored_at, received_at)) AS arrival FROM exceptions
        WHERE ${owner.sql} AND stored_at >= ${time('settledMs')} AND ${seenIn(snapshot)} GROUP BY variant_id`,
    memberships,
    key: 'found AS id, toUnixTimestamp64Milli(at.1) AS storedMs, toUnixTimestamp64Milli(at.2) AS receivedMs',
    condition: conditions.length > 0 ? conditions.join(' AND ') : '1',
    order: 'storedMs DESC, receivedMs DESC, id DESC LIMIT {limit: UInt32}',
    params: {
      ...{ ...owner.params, ...received?.params, workspaceId, block, blocks, asOfMs },
      ...{ settledMs: settledMsOf(snapshot), sinceMs, text: filter.text, limit, ...after },
    },
  }
}

/** Returns the condition that the latest occurrence of one of the variants of a finding has a text. */
function textCondition(owner: string, merges: FindingMerges): string {
  const hasText = (latest: string) =>
    `positionCaseInsensitiveUTF8(concat(${latest}.type, '\n', ${latest}.message), {text: String}) > 0`
  const variants = `SELECT variant_id FROM findings
    WHERE ${owner} AND variant_id IN (SELECT variant_id FROM findings WHERE ${owner} AND ${hasText('latest')})
    GROUP BY variant_id HAVING ${hasText('max(latest)')}`
  return `found IN (SELECT id FROM (${findingsOfVariants(variants, merges)}))`
}

/**
 * Returns the query of a page that does not read `finding_buckets`. It lists findings first that have a variant whose arrival was
 * lost by `findings`, as `isLost`: if there is one, its result is not the page. Both counts are of one moment, because `findings`
 * is read once.
 */
function queryWithoutBuckets({ owner, arrivals, memberships, key, condition, order }: QueryParts): string {
  return `
    SELECT ${key}, isLost
    FROM (
      SELECT variants.id AS found, max(arrivalOf) AS at, max(lost) AS isLost
      FROM (
        SELECT variant_id, maxIf(arrival, NOT isLater) AS arrivalOf, countIf(isLater) > 0 AND countIf(isSeen) = 0 AS lost
        FROM (
          SELECT variant_id, tuple(latest.stored_at, latest.received_at) AS arrival,
                 latest.stored_at >= ${time('settledMs')} AS isLater, 0 AS isSeen
          FROM findings WHERE ${owner} AND latest.stored_at >= ${time('sinceMs')}
          UNION ALL
          SELECT variant_id, arrival, 0 AS isLater, 1 AS isSeen FROM (${arrivals}))
        GROUP BY variant_id) AS arrived
      INNER JOIN (${memberships}) AS variants USING (variant_id)
      GROUP BY found)
    WHERE isLost OR (${condition})
    ORDER BY isLost DESC, ${order}`
}

/** Returns the query of a page that reads all three tables. */
function queryWithBuckets({ owner, arrivals, memberships, key, condition, order }: QueryParts): string {
  return `
    SELECT ${key}
    FROM (
      SELECT variants.id AS found, max(arrival) AS at
      FROM (
        SELECT variant_id, tuple(latest.stored_at, latest.received_at) AS arrival FROM findings
        WHERE ${owner} AND latest.stored_at >= ${time('sinceMs')} AND latest.stored_at < ${time('settledMs')}
        UNION ALL
        SELECT variant_id, arrival FROM (${arrivals})
        UNION ALL
        SELECT variant_id, latest AS arrival FROM finding_buckets
        WHERE workspace_id = {workspaceId: String} AND latest.stored_at >= ${time('sinceMs')}
          AND stored_bucket < ${time('settledMs')}
          AND (day, variant_id) IN (
            SELECT day, variant_id FROM findings WHERE ${owner} AND latest.stored_at >= ${time('settledMs')}
              AND variant_id NOT IN (SELECT variant_id FROM (${arrivals})))) AS arrived
      INNER JOIN (${memberships}) AS variants USING (variant_id)
      GROUP BY found)
    WHERE ${condition}
    ORDER BY ${order}`
}

/** Returns the condition on the rows of `exceptions` that were visible at the moment of the snapshot. */
function seenIn({ blocks }: FindingsSnapshot): string {
  if (blocks === undefined) return '_block_number <= {block: UInt64}'
  const [day, today] = ['toDate(received_at)', "toDate(fromUnixTimestamp64Milli({asOfMs: Int64}, 'UTC'))"]
  const isSeen = 'toInt64(_block_number) <= arrayElement({blocks: Array(Int64)}, shardNum())'
  return `(${day} != ${today} AND stored_at <= ${time('asOfMs')} OR ${day} = ${today} AND ${isSeen})`
}

const settledMsOf = ({ asOfMs }: FindingsSnapshot) => Math.floor((asOfMs - SETTLED_AFTER_MS) / BUCKET_MS) * BUCKET_MS
