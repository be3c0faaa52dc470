-- Which calls between services were received: how many ended in each minute, with the durations of both sides. Filled by the upkeep
-- (workers/upkeep/edges/) from the spans that arrived in a minute, once for each minute. `span_stats` has those that were sent
-- (clickhouse/queries/services/calls.ts).
--
-- A call that was received is a span of a server or consumer whose parent is remote, with the span that is its parent. If that is
-- of a client or producer, a further row takes the call out of those that were sent: its numbers are negative, it has no callee,
-- and the minute and the environment of the caller.
--
-- received_at: the start of the minute in which the spans of the callees arrived. Rows expire with them.
-- minute: when the calls ended, or arrived if they claim to have ended later.
-- caller, callee: names of services. Empty for a side without a span.
-- peer: of a message its destination, of a negative row what was called, as in `spans`.
-- calls, errors: errors are calls of which either side has the status `ERROR`, in negative rows the caller.
-- duration_sum_nano, durations: of the callee's spans, as in `span_stats`. Zero and empty without it.
-- caller_duration_sum_nano, caller_durations: of the caller's spans.
-- slowest: the longest duration in nanoseconds of either side, and its trace.
CREATE TABLE IF NOT EXISTS service_edges
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  minute DateTime('UTC') CODEC(Delta, LZ4),
  caller LowCardinality(String),
  callee LowCardinality(String),
  has_caller Bool,
  has_callee Bool,
  is_message Bool,
  peer LowCardinality(String),
  environment LowCardinality(String),
  calls SimpleAggregateFunction(sum, Int64),
  errors SimpleAggregateFunction(sum, Int64),
  duration_sum_nano SimpleAggregateFunction(sum, Int64),
  durations SimpleAggregateFunction(sumMap, Map(UInt16, Int64)),
  caller_duration_sum_nano SimpleAggregateFunction(sum, Int64),
  caller_durations SimpleAggregateFunction(sumMap, Map(UInt16, Int64)),
  slowest SimpleAggregateFunction(max, Tuple(duration_nano UInt64, trace_id FixedString(16)))
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, minute, caller, callee, has_caller, has_callee, is_message, peer, environment, surface_id)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  auto_statistics_types = '';
