-- How many spans ended in each minute, by service and operation, with their durations. Filled by the queue `span-stats`
-- (workers/span-stats/) in the order of clickhouse/tables/span-stats-table.ts, with rows that the batches of `spans` have counted, so
-- that each stored span counts once.
--
-- received_at: the start of the day on which the spans arrived. Rows expire with the spans that they count.
-- minute: when they ended, or arrived if they claim to have ended later.
-- operation: the name of the spans, or their route (workers/span-stats/count-spans.ts). `other` has those over a limit.
-- peer: of clients and producers, as in `spans`.
-- http_status_class: 1 to 5, or 0 without a status.
-- durations: number of spans by bucket. Bucket 0 has those of 0 ns; bucket k those of at most 2^((k - 1) / 32) ns, and more than
--   the bucket before it. So a quantile that is estimated as the middle of its bucket is off by 1.1 % at most.
-- slowest: the longest duration in nanoseconds, and the trace in which it was.
-- ORDER BY: a page of a service reads its minutes only. A list of services skips minutes within each.
CREATE TABLE IF NOT EXISTS span_stats
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  service_name LowCardinality(String),
  minute DateTime('UTC') CODEC(Delta, LZ4),
  operation LowCardinality(String),
  kind UInt8,
  status_code UInt8,
  http_status_class UInt8,
  environment LowCardinality(String),
  service_version LowCardinality(String),
  peer LowCardinality(String),
  spans SimpleAggregateFunction(sum, UInt64),
  duration_sum_nano SimpleAggregateFunction(sum, UInt64),
  durations SimpleAggregateFunction(sumMap, Map(UInt16, UInt64)),
  slowest SimpleAggregateFunction(max, Tuple(duration_nano UInt64, trace_id FixedString(16)))
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, service_name, minute, operation, kind, status_code, http_status_class, peer, environment, service_version, surface_id)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  auto_statistics_types = '';
