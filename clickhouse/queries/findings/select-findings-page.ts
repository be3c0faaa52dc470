import type { ClickHouseSettings } from '@clickhouse/client'
import { DAY_MS, HOUR_MS } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { type Select, selectRows } from '../../select.ts'
import { FINDING_SET_SETTINGS } from './finding-set.ts'
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

/** The index `by_stored_at` skips whole parts before any of their columns is opened. */
const SETTINGS: ClickHouseSettings = {
  ...FINDINGS_SETTINGS,
  ...FINDING_SET_SETTINGS,
  use_skip_indexes_on_data_read: 0,
}

/** Periods before the start of a page, tried in this order. If one contains a full page, older days are not read. */
const WINDOWS_MS = [HOUR_MS, DAY_MS, Number.POSITIVE_INFINITY]
/** The same for what few findings have, such as a text: an hour seldom contains a page of them. */
const WINDOWS_OF_FEW_MS = WINDOWS_MS.slice(1)

/**
 * Returns the findings of a page, the latest arrival first. All pages of a list are read from the same snapshot, which
 * combines three tables. Arrivals stored long before the snapshot do not change any more and come from `findings`.
 * Arrivals stored shortly before it come from the blocks of `finding_arrivals`. If a finding has arrived again since
 * the snapshot, `findings` has lost the earlier arrival, and it comes from `finding_buckets`. These tables have a row
 * per finding and day, insert or five minutes, so the number of rows does not grow with the rate of exceptions. Most
 * findings that arrived shortly before the snapshot have that arrival as their latest. Only the others are looked up in
 * `finding_buckets`, of which a day has up to 288 rows a finding.
 *
 * A batch that is stored before midnight (UTC) and repeated after it has a second row in `finding_arrivals`, because repetitions
 * are recognized within a partition, which is the day of `stored_at`. New lists show its findings by the time of the repetition,
 * until that is settled. The pages of one list agree, and no count changes.
 */
export async function selectFindingsPage(
  client: ClickHouseClient,
  page: FindingsPageKey,
  signal: AbortSignal,
): Promise<ArrivalKey[]> {
  const { filter } = page
  if (filter.chosen?.are === 'only' && filter.chosen.findingIds.length === 0) return []
  const areFew = filter.text !== undefined || filter.chosen?.are === 'only'
  const beginsAt = Math.min(Number(page.after?.storedMs ?? page.snapshot.asOfMs), settledMsOf(page.snapshot))
  let found: ArrivalKey[] = []
  for (const windowMs of areFew ? WINDOWS_OF_FEW_MS : WINDOWS_MS) {
    // An arrival within the window is later than all arrivals before the window.
    found = await selectStoredSince(client, page, Math.max(beginsAt - windowMs, 0), signal)
    if (found.length === page.limit) break
  }
  return found
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
  /** The condition on the owner of a finding. */
  readonly owner: string
  readonly arrival: string
  /** Where the arrivals of the snapshot come from. */
  readonly arrivals: string
  readonly key: string
  readonly condition: string
  readonly order: string
  readonly params: Select['params']
}

const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`

function queryParts({ workspaceId, snapshot, filter, limit, after }: FindingsPageKey, sinceMs: number): QueryParts {
  const owner = ownerCondition(filter)
  const received = receivedCondition(filter)
  const chosen = chosenCondition(filter)
  const text = filter.text === undefined ? '' : ', latest.text'
  const conditions = [
    ...(after ? ['(storedMs, receivedMs, id) < ({storedMs: Int64}, {receivedMs: Int64}, {id: String})'] : []),
    ...(received === undefined ? [] : [received.sql]),
    ...(chosen === undefined ? [] : [chosen]),
    ...(filter.text === undefined ? [] : ['positionCaseInsensitiveUTF8(at.3, {text: String}) > 0']),
  ]
  const { block, blocks, asOfMs } = snapshot
  return {
    owner: owner.sql,
    arrival: `finding_id, tuple(latest.stored_at, latest.received_at${text}) AS arrival`,
    arrivals: `FROM finding_arrivals
        WHERE ${owner.sql} AND stored_at >= ${time('settledMs')} AND ${seenIn(snapshot)}`,
    key: 'finding_id AS id, toUnixTimestamp64Milli(at.1) AS storedMs, toUnixTimestamp64Milli(at.2) AS receivedMs',
    condition: conditions.length > 0 ? conditions.join(' AND ') : '1',
    order: 'storedMs DESC, receivedMs DESC, id DESC LIMIT {limit: UInt32}',
    params: {
      ...{ ...owner.params, ...received?.params, workspaceId, block, blocks, asOfMs },
      ...{ settledMs: settledMsOf(snapshot), sinceMs, text: filter.text, limit, ...after },
    },
  }
}

/**
 * Returns the query of a page that does not read `finding_buckets`. It lists findings first whose arrival was lost by `findings`,
 * as `isLost`: if there is one, its result is not the page. Both counts are of one moment, because `findings` is read once.
 */
function queryWithoutBuckets({ owner, arrival, arrivals, key, condition, order }: QueryParts): string {
  return `
    SELECT ${key}, isLost
    FROM (
      SELECT finding_id, maxIf(arrival, NOT isLater) AS at, countIf(isLater) > 0 AND countIf(isSeen) = 0 AS isLost
      FROM (
        SELECT ${arrival}, latest.stored_at >= ${time('settledMs')} AS isLater, 0 AS isSeen FROM findings
        WHERE ${owner} AND latest.stored_at >= ${time('sinceMs')}
        UNION ALL
        SELECT ${arrival}, 0 AS isLater, 1 AS isSeen ${arrivals})
      GROUP BY finding_id)
    WHERE isLost OR (${condition})
    ORDER BY isLost DESC, ${order}`
}

/** Returns the query of a page that reads all three tables. */
function queryWithBuckets({ owner, arrival, arrivals, key, condition, order }: QueryParts): string {
  return `
    SELECT ${key}
    FROM (
      SELECT finding_id, max(arrival) AS at FROM (
        SELECT ${arrival} FROM findings
        WHERE ${owner} AND latest.stored_at >= ${time('sinceMs')} AND latest.stored_at < ${time('settledMs')}
        UNION ALL
        SELECT ${arrival} ${arrivals}
        UNION ALL
        SELECT ${arrival} FROM finding_buckets
        WHERE ${owner} AND latest.stored_at >= ${time('sinceMs')} AND stored_bucket < ${time('settledMs')}
          AND (day, finding_id) IN (
            SELECT day, finding_id FROM findings WHERE ${owner} AND latest.stored_at >= ${time('settledMs')}
              AND finding_id NOT IN (SELECT finding_id ${arrivals})))
      GROUP BY finding_id)
    WHERE ${condition}
    ORDER BY ${order}`
}

/** Returns the condition on the rows of `finding_arrivals` that were visible at the moment of the snapshot. */
function seenIn({ blocks }: FindingsSnapshot): string {
  if (blocks === undefined) return '_block_number <= {block: UInt64}'
  const [day, today] = ["toDate(stored_at, 'UTC')", "toDate(fromUnixTimestamp64Milli({asOfMs: Int64}, 'UTC'), 'UTC')"]
  const isSeen = 'toInt64(_block_number) <= arrayElement({blocks: Array(Int64)}, shardNum())'
  return `(${day} < ${today} OR (${day} = ${today} AND ${isSeen}))`
}

const settledMsOf = ({ asOfMs }: FindingsSnapshot) => Math.floor((asOfMs - SETTLED_AFTER_MS) / BUCKET_MS) * BUCKET_MS
