import type { ClickHouseSettings } from '@clickhouse/client'
import { GIB } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectBytes } from '../../select.ts'
import { ENVIRONMENT } from '../attributes/origin.ts'
import { PEER } from './peer.ts'

/** Columns of `service_edges` in the order of the selected ones. */
export const EDGE_COLUMNS = [
  ...['workspace_id', 'surface_id', 'received_at', 'minute', 'caller', 'callee', 'has_caller', 'has_callee'],
  ...['kind', 'system', 'peer', 'environment', 'calls', 'errors', 'duration_sum_nano', 'durations'],
  ...['caller_duration_sum_nano', 'caller_durations', 'slowest'],
] as const

/** The spans whose calls are counted, and those that may be their other sides. Unix ms, the ends exclusive. */
export interface CountedMinute {
  readonly fromMs: number
  readonly toMs: number
  readonly othersFromMs: number
  readonly othersToMs: number
}

/** Edges of a surface in a minute. All further ones are one, between `other` and `other`. */
const EDGES_OF_SURFACE = 1_000
/** 52 days, to which durations are cut (workers/span-stats/duration-bucket.ts). */
const MAX_DURATION_NANO = 2n ** 52n

/** The queries read what was just written, once. */
const SETTINGS: ClickHouseSettings = {
  max_threads: 1,
  max_memory_usage: String(4 * GIB),
  max_rows_to_read: '0',
  max_bytes_to_read: '0',
  use_query_condition_cache: 0,
}

const within = (from: string, to: string) =>
  `received_at >= fromUnixTimestamp64Milli({${from}: Int64}, 'UTC') AND received_at < fromUnixTimestamp64Milli({${to}: Int64}, 'UTC')`
const COUNTED = within('fromMs', 'toMs')
const OTHERS = within('othersFromMs', 'othersToMs')

const DURATION = `least(if(end_time_unix_nano > start_time_unix_nano, end_time_unix_nano - start_time_unix_nano, 0), ${MAX_DURATION_NANO})`
/** The bucket of workers/span-stats/duration-bucket.ts. */
const bucketOf = (duration: string) => `if(${duration} = 0, 0, toUInt16(1 + ceil(log2(${duration}) * 32)))`
const MINUTE = `toStartOfMinute(least(fromUnixTimestamp64Nano(least(end_time_unix_nano, 9223372036854775807), 'UTC'), received_at))`
const NO_SPAN = "toFixedString('', 8)"
/** A server or consumer whose parent is in another process: 256 is set if the SDK knows it, and then 512 if it is. */
const IS_CALLED = `kind IN (2, 5) AND parent_span_id != ${NO_SPAN} AND bitAnd(flags, 768) != 256`

const ENTRY = `
  workspace_id, surface_id, service_name, trace_id, ${MINUTE} AS minute, ${ENVIRONMENT} AS place, ${DURATION} AS duration,
  status_code = 2 AS failed`

/** Calls that were received, each with the span of its caller if that is stored. */
const RECEIVED = `
  SELECT called.workspace_id AS workspace, called.surface_id AS surface, called.minute AS minute,
         calling.service AS source, toString(called.service_name) AS target, calling.found = 1 AS hasSource, true AS hasTarget,
         called.edgeKind AS edgeKind, called.peerSystem AS peerSystem, called.peerName AS peerName, called.place AS place,
         called.failed OR calling.failed = 1 AS failed, called.duration AS targetDuration, calling.duration AS sourceDuration,
         called.trace_id AS traceId
  FROM (
    SELECT ${ENTRY}, parent_span_id, if(kind = 5, 'message', 'request') AS edgeKind,
           if(kind = 5, ${PEER.system}, '') AS peerSystem, if(kind = 5, ${PEER.name}, '') AS peerName
    FROM spans WHERE ${COUNTED} AND ${IS_CALLED}) AS called
  LEFT ANY JOIN (
    SELECT workspace_id, trace_id, span_id, toString(service_name) AS service, ${DURATION} AS duration, status_code = 2 AS failed, 1 AS found
    FROM spans
    WHERE ${OTHERS} AND (workspace_id, trace_id, span_id) IN (
      SELECT workspace_id, trace_id, parent_span_id FROM spans WHERE ${COUNTED} AND ${IS_CALLED})) AS calling
  ON called.workspace_id = calling.workspace_id AND called.trace_id = calling.trace_id AND called.parent_span_id = calling.span_id`

/** Calls that no stored span has received. */
const SENT = `
  SELECT workspace_id AS workspace, surface_id AS surface, minute, toString(service_name) AS source, '' AS target,
         true AS hasSource, false AS hasTarget, edgeKind, peerSystem, peerName, place, failed, 0 AS targetDuration,
         duration AS sourceDuration, trace_id AS traceId
  FROM (
    SELECT ${ENTRY}, ${PEER.kind} AS edgeKind, ${PEER.system} AS peerSystem, ${PEER.name} AS peerName
    FROM spans
    WHERE ${COUNTED} AND kind IN (3, 4) AND (workspace_id, trace_id, span_id) NOT IN (
      SELECT workspace_id, trace_id, parent_span_id FROM spans WHERE ${OTHERS} AND ${IS_CALLED}))`

const EDGE = 'source, target, hasSource, hasTarget, edgeKind, peerSystem, peerName, place'
const oneOf = (duration: string) => `map(${bucketOf(duration)}, toUInt64(1))`
/** A text of an edge, or `other` of one that is over the limit. */
const kept = (text: string) => `if(isRest, 'other', ${text})`

/**
 * Returns the calls between the services of one shard whose spans arrived in a minute, as a block of ClickHouse's format Native
 * with `EDGE_COLUMNS`. Empty if there are none. Throws the result of `classifyClickHouseError`.
 */
export function selectCountedEdges(
  shard: ClickHouseClient,
  minute: CountedMinute,
  signal: AbortSignal,
): Promise<Buffer> {
  return selectBytes(shard, {
    query: `
      SELECT workspace AS workspace_id, surface AS surface_id, fromUnixTimestamp64Milli({fromMs: Int64}, 'UTC') AS received_at, minute,
             ${kept('source')} AS caller, ${kept('target')} AS callee, isRest OR hasSource AS has_caller, isRest OR hasTarget AS has_callee,
             ${kept('edgeKind')} AS kind, ${kept('peerSystem')} AS system, ${kept('peerName')} AS peer, ${kept('place')} AS environment,
             sum(edges.number) AS calls, sum(edges.failures) AS errors,
             sum(edges.durationSum) AS duration_sum_nano, sumMap(edges.buckets) AS durations,
             sum(edges.sourceDurationSum) AS caller_duration_sum_nano, sumMap(edges.sourceBuckets) AS caller_durations,
             max(edges.longest) AS slowest
      FROM (
        SELECT *, dense_rank() OVER (PARTITION BY workspace, surface ORDER BY ${EDGE}) > ${EDGES_OF_SURFACE} AS isRest
        FROM (
          SELECT workspace, surface, minute, ${EDGE}, count() AS number, countIf(failed) AS failures,
                 sum(targetDuration) AS durationSum, sumMapIf(${oneOf('targetDuration')}, hasTarget) AS buckets,
                 sum(sourceDuration) AS sourceDurationSum, sumMapIf(${oneOf('sourceDuration')}, hasSource) AS sourceBuckets,
                 max((toUInt64(greatest(targetDuration, sourceDuration)), traceId)) AS longest
          FROM (${RECEIVED} UNION ALL ${SENT}) GROUP BY workspace, surface, minute, ${EDGE})) AS edges
      GROUP BY workspace_id, surface_id, received_at, minute, caller, callee, has_caller, has_callee, kind, system, peer, environment
      FORMAT Native`,
    params: { ...minute, ...PEER.params },
    signal,
    settings: SETTINGS,
  })
}
