import { OVER_QUOTA } from '../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../client.ts'
import { COUNTED_REQUESTS } from '../../counted-requests.ts'
import { selectRows } from '../../select.ts'
import { AS_SENT } from '../pipeline/period.ts'
import {
  bucketAt,
  instantsBetween,
  instantsOf,
  LARGEST_VALUES,
  MEASURE_SETTINGS,
  type MeasuredLimits,
  type MeasuredTime,
  timeParams,
} from './measured-time.ts'

/** A surface with a fault at an instant, and how large it is. */
interface FaultRow {
  readonly at: number
  readonly surfaceId: string
  readonly value: number
}

/** A request that waited for longer is not looked for. */
const WAITED_MAX = 'INTERVAL 1 DAY'

/** Returns how many requests have become dead letters. Those that are replayed and refused again do not count again. */
export function selectNewLetters(
  client: ClickHouseClient,
  time: MeasuredTime & MeasuredLimits,
  signal: AbortSignal,
): Promise<FaultRow[]> {
  const query = `
    SELECT at, surfaceId, toFloat64(sum(letters)) AS value
    FROM (
      SELECT ${instantsOf('bucket')} AS at, surfaceId, letters
      FROM (
        SELECT toString(surface_id) AS surfaceId, ${bucketAt('toUnixTimestamp(indexed_at)')} AS bucket, count() AS letters
        FROM dead_letters
        WHERE workspace_id = {workspaceId: String} AND received_at >= fromUnixTimestamp({fromSeconds: UInt32}) - ${WAITED_MAX}
          AND indexed_at >= fromUnixTimestamp({fromSeconds: UInt32}) AND indexed_at < fromUnixTimestamp({lastSeconds: UInt32})
          AND attempt = 0 AND outcome = 'dead'
        GROUP BY surfaceId, bucket))
    GROUP BY at, surfaceId ${LARGEST_VALUES}`
  return select(client, query, time, signal)
}

/**
 * Returns for how many seconds the oldest request had waited that was stored late: more than the window after it arrived. Those
 * that are not stored yet are not in the log.
 */
export function selectStoredLate(
  client: ClickHouseClient,
  time: MeasuredTime & MeasuredLimits,
  signal: AbortSignal,
): Promise<FaultRow[]> {
  const arrived = 'toUnixTimestamp(received_at)'
  const query = `
    SELECT at, surfaceId, toFloat64(max(at - arrived)) AS value
    FROM (
      SELECT arrayJoin(${instantsBetween('arrived + {windowSeconds: UInt32} + 1', 'stored - 1')}) AS at, surfaceId, arrived
      FROM (
        SELECT toString(surface_id) AS surfaceId, ${arrived} AS arrived, max(toUnixTimestamp(stored_at)) AS stored
        FROM ingest_log
        WHERE workspace_id = {workspaceId: String} AND ${AS_SENT}
          AND received_at >= fromUnixTimestamp({fromSeconds: UInt32}) - ${WAITED_MAX}
          AND received_at < fromUnixTimestamp({lastSeconds: UInt32}) AND stored_at > received_at + toIntervalSecond({windowSeconds: UInt32})
        GROUP BY surfaceId, arrived))
    GROUP BY at, surfaceId ${LARGEST_VALUES}`
  return select(client, query, time, signal)
}

/** Returns how many requests of an hour were refused for a quota of their key. Their counts are copied once a minute. */
export function selectOverQuota(
  client: ClickHouseClient,
  time: MeasuredTime & MeasuredLimits,
  signal: AbortSignal,
): Promise<FaultRow[]> {
  const query = `
    SELECT at, surfaceId, toFloat64(sum(requestsOfKind)) AS value
    FROM (
      SELECT arrayJoin(${instantsBetween('hour + 1', 'hour + 3600')}) AS at, surfaceId, requestsOfKind
      FROM (
        SELECT toString(surface_id) AS surfaceId, toUnixTimestamp(received_hour) AS hour, ${COUNTED_REQUESTS} AS requestsOfKind
        FROM request_counts
        WHERE workspace_id = {workspaceId: String} AND received_hour >= fromUnixTimestamp({fromSeconds: UInt32}) - 3600
          AND received_hour < fromUnixTimestamp({lastSeconds: UInt32}) AND outcome = '${OVER_QUOTA}'
        GROUP BY surfaceId, signal, hour))
    GROUP BY at, surfaceId ${LARGEST_VALUES}`
  return select(client, query, time, signal)
}

function select(
  client: ClickHouseClient,
  query: string,
  time: MeasuredTime & MeasuredLimits,
  signal: AbortSignal,
): Promise<FaultRow[]> {
  return selectRows(client, { query, params: { ...time, ...timeParams(time) }, signal, settings: MEASURE_SETTINGS })
}
