-- One row per occurrence of an exception, filled by workers/otlp/exceptions.ts.
CREATE TABLE IF NOT EXISTS exceptions
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  finding_id FixedString(30),
  trace_id FixedString(16),
  span_id FixedString(8),
  occurred_at_unix_nano UInt64,
  service_name LowCardinality(String),
  service_version LowCardinality(String),
  session_id String,
  source Enum8('span_event' = 1, 'log_record' = 2, 'span_status' = 3),
  type String,
  message String CODEC(ZSTD(1)),
  stacktrace String CODEC(ZSTD(1)),
  span_name String,
  escaped Bool
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, finding_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000000;

-- What is known of a finding, a row per day of arrival: reads group by finding_id. All of it is of the occurrences
-- that are retained, and expires with them.
CREATE TABLE IF NOT EXISTS findings
(
  day Date,
  workspace_id LowCardinality(String),
  finding_id FixedString(30),
  surface_id SimpleAggregateFunction(anyLast, String),
  service_name SimpleAggregateFunction(anyLast, String),
  type AggregateFunction(argMax, String, UInt64),
  message AggregateFunction(argMax, String, UInt64),
  first_seen_unix_nano SimpleAggregateFunction(min, UInt64),
  last_seen_unix_nano SimpleAggregateFunction(max, UInt64),
  occurrence_count SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, finding_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000000;

CREATE MATERIALIZED VIEW IF NOT EXISTS findings_from_exceptions TO findings AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  argMaxState(exceptions.type, occurred_at_unix_nano) AS type,
  argMaxState(exceptions.message, occurred_at_unix_nano) AS message,
  min(occurred_at_unix_nano) AS first_seen_unix_nano,
  max(occurred_at_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count
FROM exceptions
GROUP BY day, workspace_id, finding_id;

-- In which traces a finding occurred, a row per day of arrival.
CREATE TABLE IF NOT EXISTS finding_traces
(
  day Date,
  workspace_id LowCardinality(String),
  finding_id FixedString(30),
  trace_id FixedString(16),
  last_seen_unix_nano SimpleAggregateFunction(max, UInt64),
  occurrence_count SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, finding_id, trace_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000000;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_traces_from_exceptions TO finding_traces AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  trace_id,
  max(occurred_at_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count
FROM exceptions
GROUP BY day, workspace_id, finding_id, trace_id;
