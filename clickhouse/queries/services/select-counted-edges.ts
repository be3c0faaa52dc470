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

/** A row for each call that was received, and one that takes it out of those that were sent. */
const CALLS = `
  SELECT callees.workspace_id AS workspace, isSent,
         if(isSent, callers.surface_id, callees.surface_id) AS surface, if(isSent, callers.ended, callees.ended) AS ended,
         callers.service AS source, if(isSent, '', callees.service) AS target, callers.found = 1 AS hasSource, NOT isSent AS hasTarget,
         NOT isSent AND callees.kind = 5 AS isMessage,
         toString(multiIf(isSent, callers.peer, callees.kind = 5, callees.peer, '')) AS peerText,
         if(isSent, callers.place, callees.place) AS place, if(isSent, -1, 1) AS sign,
         callers.failed = 1 OR (NOT isSent AND callees.failed) AS failed,
         if(isSent, 0, callees.duration) AS targetDuration, callers.duration AS sourceDuration, callees.trace_id AS traceId
  FROM (SELECT ${OF_SPAN}, parent_span_id ${CALLEES}) AS callees
  LEFT ANY JOIN (
    SELECT ${OF_SPAN}, span_id, 1 AS found FROM spans
    WHERE ${within('callersFromMs', 'callersToMs')} AND (trace_id, span_id) IN (SELECT trace_id, parent_span_id ${CALLEES})) AS callers
  ON callees.workspace_id = callers.workspace_id AND callees.trace_id = callers.trace_id AND callees.parent_span_id = callers.span_id
  ARRAY JOIN if(callers.kind IN (3, 4), [false, true], [false]) AS isSent`

const EDGE = 'source, target, hasSource, hasTarget, isMessage, peerText, place'
const oneOf = (duration: string) => `map(${bucketOf(duration)}, toInt64(sign))`
/** A text of an edge, or `other` of one that is over the limit. */
const kept = (text: string) => `if(isRest, 'other', ${text})`

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
      SELECT workspace AS workspace_id, surface AS surface_id, fromUnixTimestamp64Milli({fromMs: Int64}, 'UTC') AS received_at,
             ended AS minute, ${kept('source')} AS caller, ${kept('target')} AS callee, isRest OR hasSource AS has_caller,
             isRest OR hasTarget AS has_callee, isMessage AS is_message, ${kept('peerText')} AS peer, ${kept('place')} AS environment,
             sum(edges.number) AS calls, sum(edges.failures) AS errors,
             sum(edges.durationSum) AS duration_sum_nano, sumMap(edges.buckets) AS durations,
             sum(edges.sourceDurationSum) AS caller_duration_sum_nano, sumMap(edges.sourceBuckets) AS caller_durations,
             max(edges.longest) AS slowest
      FROM (
        SELECT *, dense_rank() OVER (PARTITION BY workspace, surface, hasTarget ORDER BY ${EDGE}) > ${EDGES_OF_SURFACE} AS isRest
        FROM (
          SELECT workspace, surface, ended, ${EDGE}, sum(sign) AS number, sum(sign * failed) AS failures,
                 sum(targetDuration) AS durationSum, sumMapIf(${oneOf('targetDuration')}, hasTarget) AS buckets,
                 sum(sign * sourceDuration) AS sourceDurationSum, sumMapIf(${oneOf('sourceDuration')}, hasSource) AS sourceBuckets,
                 max((toUInt64(greatest(targetDuration, sourceDuration)), traceId)) AS longest
          FROM (${CALLS}) GROUP BY workspace, surface, ended, ${EDGE})) AS edges
      WHERE hasTarget OR NOT isRest
      GROUP BY workspace_id, surface_id, received_at, minute, caller, callee, has_caller, has_callee, is_message, peer, environment
      FORMAT Native`,
    params: { ...minute },
    signal,
    settings: SETTINGS,
  })
}
