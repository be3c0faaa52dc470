-- Which service has spans in which trace, and when the newest of them started: lists of traces are read from it, the newest
-- first (docs/decisions/035). A row for each trace and service of an inserted block, so that a trace has several of a service.
--
-- The rows only name candidates. A list reads the spans of the traces that it shows, so a row that was stored twice, or whose
-- spans were deleted, changes nothing. No text of a span is in it.
--
-- last_start_unix_nano: when the newest span started, or when it arrived if it claims to have started later. So a row is in no
--   day before that of its time, and days before a search are not opened.
-- names: of each name of a span, the bit that its hash has.
-- PRIMARY KEY ends before the time, as that of metric_points (0004). Hours before services, because a list without a service
--   reads its hours only.
CREATE TABLE IF NOT EXISTS trace_services
(
  day Date,
  workspace_id LowCardinality(String),
  service_name LowCardinality(String),
  trace_id FixedString(16),
  last_start_unix_nano UInt64 CODEC(Delta, LZ4),
  longest_nanos UInt64,
  has_error Bool,
  names UInt64
)
ENGINE = MergeTree
PARTITION BY day
PRIMARY KEY (workspace_id, intDiv(last_start_unix_nano, 3600000000000), service_name)
ORDER BY (workspace_id, intDiv(last_start_unix_nano, 3600000000000), service_name, last_start_unix_nano)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  merge_selector_base = 10,
  auto_statistics_types = '';

CREATE MATERIALIZED VIEW IF NOT EXISTS trace_services_from_spans TO trace_services AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  service_name,
  trace_id,
  max(least(start_time_unix_nano, toUInt64(toUnixTimestamp64Nano(received_at)))) AS last_start_unix_nano,
  max(if(end_time_unix_nano > start_time_unix_nano, end_time_unix_nano - start_time_unix_nano, 0)) AS longest_nanos,
  max(status_code = 2) AS has_error,
  groupBitOr(bitShiftLeft(toUInt64(1), cityHash64(name) % 64)) AS names
FROM spans
GROUP BY day, workspace_id, service_name, trace_id;

-- Spans from before the view. Those that arrive meanwhile may be in both.
INSERT INTO trace_services
SELECT
  toDate(received_at) AS day,
  workspace_id,
  service_name,
  trace_id,
  max(least(start_time_unix_nano, toUInt64(toUnixTimestamp64Nano(received_at)))) AS last_start_unix_nano,
  max(if(end_time_unix_nano > start_time_unix_nano, end_time_unix_nano - start_time_unix_nano, 0)) AS longest_nanos,
  max(status_code = 2) AS has_error,
  groupBitOr(bitShiftLeft(toUInt64(1), cityHash64(name) % 64)) AS names
FROM spans
GROUP BY workspace_id, trace_id, day, service_name
SETTINGS optimize_aggregation_in_order = 1, max_partitions_per_insert_block = 0;
