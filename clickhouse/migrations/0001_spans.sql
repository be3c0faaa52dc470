-- One row per received span, filled by workers/otlp/traces/ in the order of clickhouse/tables/spans-table.ts.
--
-- ORDER BY: a trace is read whole, so its rows lie together (ARCHITECTURE, "Facts measured").
-- Partitions are days of arrival, never of what a span claims. Whole parts expire.
-- attributes: keys as LowCardinality take 10 % less CPU on insert and on merge than as String (and twice as much when no
--   key ever repeats); ZSTD(1) takes 22 % less disk than LZ4 at the same CPU. Blocks are sent as Map(String, String) and
--   converted here: sending dictionaries would save ClickHouse another 0.1 s a million rows and cost the worker more.
-- by_trace_id: a trace lies in one or two parts, and the key leads to one granule of every part. This filter says which parts
--   have the trace. Of 100 million spans in 56 parts a read takes 1.5 granules instead of 56, and half the CPU of ClickHouse
--   (traces of 20: 17.7 to 9.0 ms, of 1,000: 25.4 to 12.4), for 0.06 bytes a span of disk. Its cost on insert and merge is lost
--   in the noise (0.1 of 3.5 CPU s a million spans).
-- by_attribute: which granules contain an attribute with its value, as hashes of both (docs/decisions/031). Read with the
--   condition of clickhouse/queries/attributes/attribute-condition.ts, which must repeat this expression. Workers do not build
--   it when they insert (clickhouse/client.ts): the first merge does, because building it twice costs more than reading the
--   newest parts whole. A part without it is read whole, and the answer is the same. 0.7 bytes a span.
-- min_level_for_wide_part: an inserted part is one data file instead of over a hundred. On ext4, with merges deleting
--   as many, wide inserts took 3.3 CPU s a million rows, 2.0 of them in the kernel; compact ones 2.0.
-- string_serialization_version: lengths beside the bytes take 17 % less disk than apart, and half the files.
-- auto_statistics_types: no query here is planned by them; making them took 0.1 CPU s a million rows and merge.
-- merge_selector_base: 10 parts instead of 5 are merged at once, so that a row was rewritten 0.8 times instead of 1.6 in the first
--   4 million (3.5 to 2.4 CPU s a million). A trace is read in 13.9 ms instead of 12.2 from these parts.
-- min_age_to_force_merge_seconds and the two after it: a read by key opens every part of every day, and merges leave a past day
--   with about eight parts: they stop when no more are inserted. A trace of 1,000 spans took 0.09 ms of ClickHouse for each
--   part that it is not in, 16 ms more with 30 days than with one. So the parts of a day are merged into one, once, when all of
--   them are a day old: one more rewrite of each row, at a time without inserts into that day. A day of more than 150 GB
--   (max_bytes_to_merge_at_max_space_in_pool) keeps its parts, which are large. All tables have these settings that reads look
--   up by key over all days. The others keep their parts: `logs`, `metric_points` and `ingest_log` are read within a range of
--   time, `finding_arrivals` has two days, and few requests fill `build_reports`, `dead_letters` and the tables of the audit.
-- The migrator sets the deduplication window and fsync (clickhouse/migrate/table-settings.ts).
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
  http_status_code UInt16 COMMENT '0: no status; 65535: the status 0',
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_attribute arrayMap((k, v) -> cityHash64(k, v), mapKeys(attributes), mapValues(attributes))
    TYPE bloom_filter(0.01) GRANULARITY 1
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
  merge_selector_base = 10,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- Which service has spans in which trace, and when the newest of them started: lists of traces are read from it, the newest
-- first (docs/decisions/035). A row for each trace and service of an inserted block, so that a trace has several of a service.
--
-- The rows only name candidates. A list reads the spans of the traces that it shows, so a row that was stored twice, or whose
-- spans were deleted, changes nothing. No text of a span is in it.
--
-- last_start_unix_nano: when the newest span started, or when it arrived if it claims to have started later. So a row is in no
--   day before that of its time, and days before a search are not opened.
-- names: of each name of a span, the bit that its hash has.
-- PRIMARY KEY ends before the time, as that of metric_points. Hours before services, because a list without a service
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
