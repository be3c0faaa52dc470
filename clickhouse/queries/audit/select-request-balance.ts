import type { AdmittedQueue } from '../../../schemas/queues/names.ts'
import { REFUSED } from '../../../shared/queue/request-counts.ts'
import { BURNED_PREFIX } from '../../burn-token.ts'
import type { ClickHouseClient } from '../../client.ts'
import { COUNTED_REQUESTS } from '../../counted-requests.ts'
import { selectRows } from '../../select.ts'

/** Part of an audit. `from` and `to` are Unix seconds at full hours. An empty workspace means all. */
export interface AuditRange {
  readonly from: number
  readonly to: number
  readonly workspaceId: string
  readonly signal: AbortSignal
}

/** The outcomes of the requests of one surface and kind that arrived in one hour. */
export interface RequestBalance {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly kind: AdmittedQueue
  /** Unix time of the hour in seconds. */
  readonly hour: number
  readonly accepted: number
  /** Requests that edges have answered: acknowledged, refused, unconfirmed or done. */
  readonly received: number
  readonly acknowledged: number
  /** Refused requests by the status of their response. */
  readonly refusedByStatus: Readonly<Record<string, number>>
  readonly unconfirmed: number
  /** Requests that were answered with success, without anything to accept. */
  readonly done: number
  /** Requests that are stored, whole or in part. */
  readonly stored: number
  readonly deadLettered: number
  readonly discarded: number
  /** Requests whose response stated why they are not stored. */
  readonly answered: number
}

type Row = Readonly<
  Record<
    | 'workspace_id'
    | 'surface_id'
    | 'signal'
    | 'at'
    | `${'accepted' | 'received' | 'acknowledged' | 'unconfirmed' | 'done'}_requests`
    | 'stored'
    | 'dead_lettered'
    | 'discarded'
    | 'answered',
    string
  >
> & { readonly refused_requests: Readonly<Record<string, string>> }

/** Returns the requests of a range by hour of arrival, workspace, surface and kind. Replays of dead letters do not count again. */
export async function selectRequestBalance(
  client: ClickHouseClient,
  { from, to, workspaceId, signal }: AuditRange,
): Promise<RequestBalance[]> {
  const ofWorkspace = "({workspaceId: String} = '' OR workspace_id = {workspaceId: String})"
  const outcome = (name: string) => `sumIf(counted, outcome = '${name}') AS ${name}`
  const rows = await selectRows<Row>(client, {
    query: `
      SELECT workspace_id, surface_id, signal, toUnixTimestamp(hour) AS at,
        sum(accepted) AS accepted_requests, sum(acknowledged) AS acknowledged_requests,
        sum(received) AS received_requests, sum(unconfirmed) AS unconfirmed_requests, sum(done) AS done_requests,
        sumMap(refused) AS refused_requests,
        sum(settled) - sum(not_stored) AS stored, sum(dead) AS dead_lettered, sum(over_bound) AS discarded,
        sum(not_stored) - dead_lettered - discarded AS answered
      FROM (
        SELECT toString(workspace_id) AS workspace_id, toString(surface_id) AS surface_id, toString(signal) AS signal,
          toDateTime(received_hour, 'UTC') AS hour,
          ${['accepted', 'received', 'acknowledged', 'unconfirmed', 'done'].map(outcome).join(', ')},
          sumMapIf(map(substring(outcome, {refusedLength: UInt8} + 1), counted), startsWith(outcome, {refused: String})) AS refused,
          toInt64(0) AS settled, toInt64(0) AS not_stored, toInt64(0) AS dead, toInt64(0) AS over_bound
        FROM (
          SELECT workspace_id, surface_id, signal, received_hour, outcome, ${COUNTED_REQUESTS} AS counted
          FROM request_counts
          WHERE received_hour >= {from: DateTime} AND received_hour < {to: DateTime} AND ${ofWorkspace}
          GROUP BY ALL
        )
        GROUP BY ALL
        UNION ALL
        SELECT toString(workspace_id), toString(surface_id), toString(signal), toStartOfHour(received_at), 0, 0, 0, 0, 0, map(),
          toInt64(sum(payloads)), toInt64(sum(length(l.refused))), toInt64(sum(arrayCount(r -> r.3 != '', l.refused))),
          toInt64(sum(arrayCount(r -> has(discarded_indexes, r.1), l.refused)))
        FROM ingest_log AS l
        WHERE received_at >= {from: DateTime} AND received_at < {to: DateTime} AND replayed_at = 0 AND ${ofWorkspace}
          AND NOT startsWith(workspace_id, {burnedPrefix: String})
        GROUP BY ALL
      )
      GROUP BY workspace_id, surface_id, signal, at
      ORDER BY at, workspace_id, surface_id, signal`,
    params: { from, to, workspaceId, refused: REFUSED, refusedLength: REFUSED.length, burnedPrefix: BURNED_PREFIX },
    signal,
  })
  return rows.map(row => ({
    workspaceId: row.workspace_id,
    surfaceId: row.surface_id,
    kind: row.signal as AdmittedQueue,
    hour: Number(row.at),
    accepted: Number(row.accepted_requests),
    acknowledged: Number(row.acknowledged_requests),
    received: Number(row.received_requests),
    refusedByStatus: Object.fromEntries(Object.entries(row.refused_requests).map(([name, n]) => [name, Number(n)])),
    unconfirmed: Number(row.unconfirmed_requests),
    done: Number(row.done_requests),
    stored: Number(row.stored),
    deadLettered: Number(row.dead_lettered),
    discarded: Number(row.discarded),
    answered: Number(row.answered),
  }))
}

/** Returns the first hour of which requests are counted, in Unix seconds, or undefined if none is. */
export async function selectFirstCountedHour(
  client: ClickHouseClient,
  signal: AbortSignal,
): Promise<number | undefined> {
  const query =
    "SELECT toUnixTimestamp(min(received_hour)) AS at, count() AS counts FROM request_counts WHERE outcome = 'accepted'"
  const [first] = await selectRows<{ at: number; counts: string }>(client, { query, params: {}, signal })
  return first === undefined || first.counts === '0' ? undefined : first.at
}
