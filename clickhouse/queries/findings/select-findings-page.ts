import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { type FindingsFilter, ownerCondition, receivedCondition } from './findings-filter.ts'
import type { FindingsSnapshot } from './select-findings-snapshot.ts'

/** A finding's place in a list: its latest arrival as of the list's snapshot. */
export interface ArrivalPlace {
  readonly id: string
  /** Unix ms, decimal. */
  readonly storedMs: string
  readonly receivedMs: string
}

export interface FindingsPageKey {
  readonly workspaceId: string
  readonly snapshot: FindingsSnapshot
  readonly filter: FindingsFilter
  readonly limit: number
  /** The last one of the page before. */
  readonly after: ArrivalPlace | undefined
}

const BUCKET_MS = 300_000
/**
 * Twice as long as a worker waits for an insert (INSERT_TIMEOUT_MS): what began before is seen by now, in every table,
 * or will never be.
 */
const SETTLED_AFTER_MS = 120_000

/** `by_stored_at` leaves out whole parts before any of their columns is opened. */
const STORED_AT_SETTINGS: ClickHouseSettings = { use_skip_indexes_on_data_read: 0 }

/** How far back from where a page begins it is looked for first: where that has enough, older days are not read. */
const WINDOWS_MS = [3_600_000, 86_400_000, Number.POSITIVE_INFINITY]

/**
 * Which findings are on a page, the latest arrival first. Every page of a list is read of what the snapshot saw: what was
 * stored long enough before it stands still in `findings`; what was stored shortly before it is told by the blocks of
 * `finding_arrivals`; and of findings that have arrived again since, `findings` has lost the earlier arrival, which
 * `finding_buckets` keeps. All of it is a row per finding and day, insert or five minutes: their number does not grow
 * with the rate of exceptions.
 */
export async function selectFindingsPage(
  client: ClickHouseClient,
  page: FindingsPageKey,
  signal: AbortSignal,
): Promise<ArrivalPlace[]> {
  const beginsAt = Math.min(Number(page.after?.storedMs ?? page.snapshot.asOfMs), settledMsOf(page.snapshot))
  let places: ArrivalPlace[] = []
  for (const windowMs of WINDOWS_MS) {
    // An arrival within the window is later than all before it, whatever else the finding has there.
    places = await selectStoredSince(client, page, Math.max(beginsAt - windowMs, 0), signal)
    if (places.length === page.limit) break
  }
  return places
}

function selectStoredSince(
  client: ClickHouseClient,
  { workspaceId, snapshot, filter, limit, after }: FindingsPageKey,
  sinceMs: number,
  signal: AbortSignal,
): Promise<ArrivalPlace[]> {
  const owner = ownerCondition(filter)
  const received = receivedCondition(filter)
  const text = filter.text === undefined ? '' : ', latest.text'
  const place = `finding_id, tuple(latest.stored_at, latest.received_at${text}) AS place`
  const time = (name: string) => `fromUnixTimestamp64Milli({${name}: Int64}, 'UTC')`
  const outer = [
    ...(after ? ['(storedMs, receivedMs, id) < ({storedMs: Int64}, {receivedMs: Int64}, {id: String})'] : []),
    ...(received === undefined ? [] : [received.sql]),
    ...(filter.text === undefined ? [] : ['positionCaseInsensitiveUTF8(at.3, {text: String}) > 0']),
  ]
  const query = `
    SELECT finding_id AS id, toUnixTimestamp64Milli(at.1) AS storedMs, toUnixTimestamp64Milli(at.2) AS receivedMs
    FROM (
      SELECT finding_id, max(place) AS at FROM (
        SELECT ${place} FROM findings
        WHERE ${owner.sql} AND latest.stored_at >= ${time('sinceMs')} AND latest.stored_at < ${time('settledMs')}
        UNION ALL
        SELECT ${place} FROM finding_arrivals
        WHERE ${owner.sql} AND stored_at >= ${time('settledMs')} AND _block_number <= {block: UInt64}
        UNION ALL
        SELECT ${place} FROM finding_buckets
        WHERE ${owner.sql} AND latest.stored_at >= ${time('sinceMs')} AND stored_bucket < ${time('settledMs')}
          AND (day, finding_id) IN (
            SELECT day, finding_id FROM findings WHERE ${owner.sql} AND latest.stored_at >= ${time('settledMs')}))
      GROUP BY finding_id)
    ${outer.length > 0 ? `WHERE ${outer.join(' AND ')}` : ''}
    ORDER BY storedMs DESC, receivedMs DESC, id DESC LIMIT {limit: UInt32}`
  const params = {
    ...owner.params,
    ...received?.params,
    workspaceId,
    block: snapshot.block,
    settledMs: settledMsOf(snapshot),
    sinceMs,
    text: filter.text,
    limit,
    ...after,
  }
  return selectRows<ArrivalPlace>(client, { query, params, signal, settings: STORED_AT_SETTINGS })
}

const settledMsOf = ({ asOfMs }: FindingsSnapshot) => Math.floor((asOfMs - SETTLED_AFTER_MS) / BUCKET_MS) * BUCKET_MS
