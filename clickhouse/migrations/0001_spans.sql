-- One row per received span, filled by workers/otlp/traces/ in the order of clickhouse/tables/spans-table.ts.
-- docs/decisions/047 has what each of this costs, and what was tried.
--
-- ORDER BY: spans that started in the same ten seconds lie together, and in them the spans of a trace. A part has the spans of a few
--   such buckets, so that all but the first merges copy long runs of rows. `trace_buckets` says in which buckets a trace is.
-- start_bucket: when the span started, or when it arrived if it claims to have started later, in units of ten seconds.
-- Partitions are days of arrival, never of what a span claims. Whole parts expire.
-- origin: resource and scope as one text (workers/otlp/protobuf/origin-writer.ts).
-- attribute_keys, attribute_values: clickhouse/tables/packed-attributes.ts. A service has few lists of keys, so that conditions on keys
--   are computed once for each list.
-- details: events, links and what few spans have (clickhouse/tables/span-details.ts). Only reads of whole spans need it.
-- peer: what a client, producer or consumer talks to, by its attributes: kind, system and name in three lines, or empty
--   (workers/otlp/traces/peers.ts).
-- by_attribute: which granules contain an attribute with its value, as hashes of both (docs/decisions/031). Read with the
--   condition of clickhouse/queries/attributes/packed-attributes.ts, which must repeat this expression. Workers do not build
--   it when they insert (clickhouse/client.ts): the first merge does. A part without it is read whole, and the answer is the same.
-- by_trace_id: a granule in which a workspace ends may have any bucket, so that the key leads to one of every part of a day. This
--   filter leaves out those without the trace: of 14 million spans in 63 parts a read takes 2 granules instead of 41, 8 ms of CPU
--   instead of 29.
-- by_service: the services of a granule, so that a search for one that is rare reads few of them.
-- min_level_for_wide_part: an inserted part is one data file instead of many, each of which would be synced.
-- string_serialization_version: lengths beside the bytes take 17 % less disk than apart, and half the files.
-- auto_statistics_types: no query here is planned by them; making them took 0.1 CPU s a million rows and merge.
-- merge_selector_base: 10 parts instead of 5 are merged at once (docs/decisions/008).
-- min_age_to_force_merge_seconds and the two after it: a read by key opens every part of every day, and merges leave a past day
--   with about eight parts: they stop when no more are inserted. So the parts of a day are merged into one, once, when all of
--   them are a day old: one more rewrite of each row, at a time without inserts into that day. A day of more than 150 GB
--   (max_bytes_to_merge_at_max_space_in_pool) keeps its parts, which are large. All tables have these settings that reads look
--   up by key over all days. The others keep their parts: `logs`, `metric_points` and `ingest_log` are read within a range of
--   time, and few requests fill `build_reports`, `dead_letters` and the tables of the audit.
-- The migrator sets the deduplication window and fsync (clickhouse/migrate/table-settings.ts).
CREATE TABLE IF NOT EXISTS spans
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  service_name LowCardinality(String),
  origin LowCardinality(String),
  trace_id FixedString(16),
  span_id FixedString(8),
  parent_span_id FixedString(8),
  flags UInt32,
  name String,
  kind UInt8,
  start_time_unix_nano UInt64 CODEC(Delta, LZ4),
  end_time_unix_nano UInt64 CODEC(Delta, LZ4),
  status_code UInt8,
  status_message String,
  attribute_keys LowCardinality(String),
  attribute_values String CODEC(ZSTD(1)),
  session_id String,
  http_route String,
  http_status_code UInt16 COMMENT '0: no status; 65535: the status 0',
  details String CODEC(ZSTD(1)),
  peer LowCardinality(String),
  start_bucket UInt32 MATERIALIZED intDiv(least(start_time_unix_nano, toUInt64(toUnixTimestamp64Nano(received_at))), 10000000000),
  INDEX by_attribute arrayMap((k, v) -> cityHash64(k, v), arrayPopFront(arrayPopBack(splitByChar('\0', attribute_keys))),
    arrayResize(splitByChar('\0', attribute_values), length(arrayPopFront(arrayPopBack(splitByChar('\0', attribute_keys)))))) TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_service service_name TYPE set(100) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, start_bucket, trace_id, start_time_unix_nano)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  string_serialization_version = 'single_stream',
  auto_statistics_types = '',
  merge_selector_base = 10,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- In which buckets of `spans` a trace is, a row for each of an inserted block. A trace is read by its id, which is all that a caller
-- knows of it: its spans may have arrived on other days than their exceptions.
--
-- The rows only say where to look. A row that was stored twice, or whose spans were deleted, changes no answer.
CREATE TABLE IF NOT EXISTS trace_buckets
(
  day Date,
  workspace_id LowCardinality(String),
  trace_id FixedString(16),
  start_bucket UInt32,
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY day
ORDER BY (workspace_id, trace_id, start_bucket)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS
  index_granularity = 1024,
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  merge_selector_base = 10,
  auto_statistics_types = '',
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS trace_buckets_from_spans TO trace_buckets AS
SELECT DISTINCT
  toDate(received_at) AS day,
  workspace_id,
  trace_id,
  start_bucket
FROM spans;
