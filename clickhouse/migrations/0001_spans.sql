-- One row per received span, filled by workers/otlp/spans.ts in the order of clickhouse/spans-table.ts.
--
-- ORDER BY: a trace is read whole, so its rows lie together (ARCHITECTURE, "Facts measured").
-- Partitions are days of arrival, never of what a span claims; whole parts expire.
-- attributes: keys as LowCardinality take 10 % less CPU on insert and on merge than as String (and twice as much when no
--   key ever repeats); ZSTD(1) takes 22 % less disk than LZ4 at the same CPU. Blocks are sent as Map(String, String) and
--   converted here: sending dictionaries would save ClickHouse another 0.1 s a million rows and cost the worker more.
-- min_level_for_wide_part: an inserted part is one data file instead of over a hundred. On ext4, with merges deleting
--   as many, wide inserts took 3.3 CPU s a million rows, 2.0 of them in the kernel; compact ones 2.0.
-- string_serialization_version: lengths beside the bytes take 17 % less disk than apart, and half the files.
-- auto_statistics_types: no query here is planned by them; making them took 0.1 CPU s a million rows and merge.
-- non_replicated_deduplication_window: tokens must be known for 24 h. A million is 11 inserts a second for a day; a
--   full window takes 200 MB of memory, 66 MB of disk and 0.7 s when the table is loaded.
-- Together: 0.7 CPU s a million rows to insert, 1.2 for a merge of ten inserts into one, 23 bytes a row.
CREATE TABLE IF NOT EXISTS spans
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  service_name LowCardinality(String),
  service_version LowCardinality(String),
  resource LowCardinality(String),
  resource_dropped_attributes_count UInt32,
  resource_schema_url LowCardinality(String),
  scope_name LowCardinality(String),
  scope_version LowCardinality(String),
  scope_attributes LowCardinality(String),
  scope_schema_url LowCardinality(String),
  scope_dropped_attributes_count UInt32,
  trace_id FixedString(16),
  span_id FixedString(8),
  parent_span_id FixedString(8),
  trace_state String,
  flags UInt32,
  name String,
  kind UInt8,
  start_time_unix_nano UInt64 CODEC(Delta, LZ4),
  end_time_unix_nano UInt64 CODEC(Delta, LZ4),
  status_code UInt8,
  status_message String,
  attributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
  attribute_types Array(Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)),
  dropped_attributes_count UInt32,
  events Array(Tuple(
    time_unix_nano UInt64,
    name String,
    attributes Map(String, String),
    attribute_types Array(Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)),
    dropped_attributes_count UInt32)),
  dropped_events_count UInt32,
  links Array(Tuple(
    trace_id String,
    span_id String,
    trace_state String,
    flags UInt32,
    attributes Map(String, String),
    attribute_types Array(Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)),
    dropped_attributes_count UInt32)),
  dropped_links_count UInt32,
  session_id String,
  http_route String,
  http_status_code UInt16
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, trace_id, start_time_unix_nano)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  string_serialization_version = 'single_stream',
  auto_statistics_types = '',
  non_replicated_deduplication_window = 1000000;
