import type { ClickHouseSettings } from '@clickhouse/client'
import { GIB } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectBytes } from '../../select.ts'
import { ENVIRONMENT } from '../attributes/origin.ts'

/** Columns of `service_edges` in the order of the selected ones. */
export const EDGE_COLUMNS = [
  ...[
    'workspace_id',
    'surface_id',
    'received_at',
    'minute',
    'caller',
    'callee',
    'has_caller',
    'has_callee',
    'is_message',
  ],
  ...['peer', 'environment', 'calls', 'errors', 'duration_sum_nano', 'durations'],
  ...['caller_duration_sum_nano', 'caller_durations', 'slowest'],
] as const

/** The minute of arrival whose calls are counted, and the arrival of their callers. Unix ms, the ends exclusive. */
interface CountedMinute {
  readonly fromMs: number
  readonly toMs: number
  readonly callersFromMs: number
  readonly callersToMs: number
}

/** Edges of a surface in a minute. All further ones are one, between `other` and `other`. */
const EDGES_OF_SURFACE = 1_000
/** 52 days, to which durations are cut (workers/span-stats/duration-bucket.ts). */
const MAX_DURATION_NANO = 2n ** 52n

/** The query reads what was just written, once. */
const SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  max_memory_usage: String(4 * GIB),
  max_rows_to_read: '0',
  max_bytes_to_read: '0',
  use_query_condition_cache: 0,
}

const within = (from: string, to: string) =>
  `received_at >= fromUnixTimestamp64Milli({${from}: Int64}, 'UTC') AND received_at < fromUnixTimestamp64Milli({${to}: Int64}, 'UTC')`

const DURATION = `toInt64(least(if(end_time_unix_nano > start_time_unix_nano, end_time_unix_nano - start_time_unix_nano, 0), ${MAX_DURATION_NANO}))`
/** The bucket of workers/span-stats/duration-bucket.ts. */
const bucketOf = (duration: string) => `if(${duration} = 0, 0, toUInt16(1 + ceil(log2(${duration}) * 32)))`
const MINUTE = `toStartOfMinute(least(fromUnixTimestamp64Nano(least(end_time_unix_nano, 9223372036854775807), 'UTC'), received_at))`
const NO_SPAN = "toFixedString('', 8)"

/**
 * The spans that received a call: of a server or consumer whose parent is in another process. 256 is set if the SDK knows it, and
 * then 512 if it is.
 */
const CALLEES = `
  FROM spans WHERE ${within('fromMs', 'toMs')} AND kind IN (2, 5) AND parent_span_id != ${NO_SPAN} AND bitAnd(flags, 768) != 256`

const OF_SPAN = `
  workspace_id, surface_id, toString(service_name) AS service, trace_id, kind, peer, ${MINUTE} AS ended, ${ENVIRONMENT} AS place,
  ${DURATION} AS duration, status_code = 2 AS failed`

const oneOf = (duration: string) => `map(${bucketOf(duration)}, toInt64(1))`

/** Calls that were received, with the sums of those that have both sides in common. */
const RECEIVED = `
  SELECT callees.workspace_id AS workspace, callees.surface_id AS surface, callers.surface_id AS callerSurface,
         callees.ended AS ended, callers.ended AS callerEnded, callers.service AS source, callees.service AS target,
         callers.found = 1 AS hasSource, callees.kind = 5 AS isMessage, if(callees.kind = 5, callees.peer, '') AS message,
         callers.kind IN (3, 4) AS wasSent, if(wasSent, callers.peer, '') AS called, callees.place AS place, callers.place AS callerPlace,
         toInt64(count()) AS number, toInt64(countIf(callees.failed OR callers.failed = 1)) AS failures,
         toInt64(countIf(callers.failed = 1)) AS callerFailures, sum(callees.duration) AS durationSum, sumMap(${oneOf('callees.duration')}) AS buckets,
         sum(callers.duration) AS callerDurationSum, sumMapIf(${oneOf('callers.duration')}, callers.found = 1) AS callerBuckets,
         max((toUInt64(greatest(callees.duration, callers.duration)), callees.trace_id)) AS longest
  FROM (SELECT ${OF_SPAN}, parent_span_id ${CALLEES}) AS callees
  LEFT ANY JOIN (
    SELECT ${OF_SPAN}, span_id, 1 AS found FROM spans
    WHERE ${within('callersFromMs', 'callersToMs')} AND (trace_id, span_id) IN (SELECT trace_id, parent_span_id ${CALLEES})) AS callers
  ON callees.workspace_id = callers.workspace_id AND callees.trace_id = callers.trace_id AND callees.parent_span_id = callers.span_id
  GROUP BY workspace, surface, callerSurface, ended, callerEnded, source, target, hasSource, isMessage, message, wasSent, called, place, callerPlace`

/** The same, and what takes them out of those that were sent. */
const COUNTED = `
  SELECT workspace, if(isSent, callerSurface, surface) AS ofSurface, if(isSent, callerEnded, ended) AS minute, source,
         if(isSent, '', target) AS target, hasSource, NOT isSent AS hasTarget, NOT isSent AND isMessage AS isMessage,
         if(isSent, called, message) AS peerText, if(isSent, callerPlace, place) AS place,
         if(isSent, -number, number) AS number, if(isSent, -callerFailures, failures) AS failures,
         if(isSent, 0, durationSum) AS durationSum, if(isSent, CAST(map(), 'Map(UInt16, Int64)'), buckets) AS buckets,
         if(isSent, -callerDurationSum, callerDurationSum) AS callerDurationSum,
         if(isSent, mapApply((bucket, one) -> (bucket, -one), callerBuckets), callerBuckets) AS callerBuckets, longest
  FROM (${RECEIVED}) ARRAY JOIN if(wasSent, [false, true], [false]) AS isSent`

const EDGE = 'source, target, hasSource, hasTarget, isMessage, peerText, place'
/** A text of an edge, or `other` of one that is over the limit. */
const kept = (text: string) => `if(isRest, 'other', toString(${text}))`

/**
 * Returns the calls that services of one shard received and whose spans arrived in a minute, as a block of ClickHouse's format
 * Native with `EDGE_COLUMNS`. Empty if there are none. Throws the result of `classifyClickHouseError`.
 */
export function selectCountedEdges(
  shard: ClickHouseClient,
  minute: CountedMinute,
  signal: AbortSignal,
): Promise<Buffer> {
  return selectBytes(shard, {
    query: `
      SELECT workspace AS workspace_id, ofSurface AS surface_id, fromUnixTimestamp64Milli({fromMs: Int64}, 'UTC') AS received_at, minute,
             ${kept('source')} AS caller, ${kept('target')} AS callee, isRest OR hasSource AS has_caller, isRest OR hasTarget AS has_callee,
             isMessage AS is_message, ${kept('peerText')} AS peer, ${kept('place')} AS environment, sum(number) AS calls,
             sum(failures) AS errors, sum(durationSum) AS duration_sum_nano, sumMap(buckets) AS durations,
             sum(callerDurationSum) AS caller_duration_sum_nano, sumMap(callerBuckets) AS caller_durations, max(longest) AS slowest
      FROM (
        SELECT *, dense_rank() OVER (PARTITION BY workspace, ofSurface, hasTarget ORDER BY ${EDGE}) > ${EDGES_OF_SURFACE} AS isRest
        FROM (${COUNTED}))
      WHERE hasTarget OR NOT isRest
      GROUP BY workspace_id, surface_id, received_at, minute, caller, callee, has_caller, has_callee, is_message, peer, environment
      FORMAT Native`,
    params: { ...minute },
    signal,
    settings: SETTINGS,
  })
}
