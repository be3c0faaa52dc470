-- Who calls whom: how many calls ended in each minute, by the two services, with the durations of both sides. Filled by the upkeep
-- (workers/upkeep/edges/) from the spans that arrived in a minute, once for each minute, so that each stored span counts once.
--
-- A call is a span of a server or consumer whose parent is remote, with the span that is its parent; or a span of a client or
-- producer that is the parent of none.
--
-- received_at: the start of the minute in which the spans arrived. Rows expire with them.
-- minute: when the calls ended, or arrived if they claim to have ended later.
-- caller, callee: names of services. Empty for a side without a span.
-- kind: `request` or `message` if the callee has a span, else the kind of what was called, or `request` if it does not say.
-- system, peer: what was called by its own name, of a message its destination (clickhouse/queries/services/peer.ts).
-- calls, errors: errors are calls of which either side has the status `ERROR`.
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
  kind LowCardinality(String),
  system LowCardinality(String),
  peer LowCardinality(String),
  environment LowCardinality(String),
  calls SimpleAggregateFunction(sum, UInt64),
  errors SimpleAggregateFunction(sum, UInt64),
  duration_sum_nano SimpleAggregateFunction(sum, UInt64),
  durations SimpleAggregateFunction(sumMap, Map(UInt16, UInt64)),
  caller_duration_sum_nano SimpleAggregateFunction(sum, UInt64),
  caller_durations SimpleAggregateFunction(sumMap, Map(UInt16, UInt64)),
  slowest SimpleAggregateFunction(max, Tuple(duration_nano UInt64, trace_id FixedString(16)))
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, minute, caller, callee, has_caller, has_callee, kind, system, peer, environment, surface_id)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  auto_statistics_types = '';
