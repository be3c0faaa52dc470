-- One row per received log record, filled by workers/otlp/logs.ts in the order of clickhouse/logs-table.ts.
--
-- timestamp is what rows are ordered and asked by: the time of the record, else the time it was observed, else its
--   arrival; the two times stand beside it as they were sent.
-- ORDER BY: dashboards ask for a service over a time. Days of arrival, compact parts and the window: see 0001.
-- Zero trace_id and span_id: the record belongs to no trace.
-- logs_by_trace: the records of one trace among 5 million in 4.5 ms (8.4 without it), as with a projection by trace, which
--   takes eight times the disk.
-- logs_by_word: ask with hasAllTokens(lower(body), 'connection timeout') or hasAnyTokens; the words in lower case. Seen
--   with 5 million records of 13 words, most of them with a number of their own, a million in the workspace asked for:
--     index                         rare word   id, any workspace   frequent word by minute   CPU s per million records
--     none                              28 ms              120 ms                     34 ms   2.3, with merges
--     tokenbf_v1 (32 KiB)                6 ms               11 ms                     73 ms   + 0.7
--     ngrambf_v1 (4 letters, 32 KiB)     5 ms               10 ms                     67 ms   + 3, one merge
--     text                               3 ms                4 ms                     12 ms   + 4.6
--   Bloom filters are read whole for every question (4 MB per million records) and are of no use for a word that each
--   granule holds; the text index is read in a few places of each part, however large. On records as bench/ makes
--   them it costs 2.7 CPU s per million beside 1.7 for all else, and 28 bytes each on disk beside 44.
-- body ZSTD(1): 40 % less than LZ4, for no more CPU.
CREATE TABLE IF NOT EXISTS logs
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
  timestamp DateTime64(9, 'UTC') CODEC(Delta, LZ4),
  time_unix_nano UInt64 CODEC(Delta, LZ4),
  observed_time_unix_nano UInt64 CODEC(Delta, LZ4),
  severity_number UInt8,
  severity_text String,
  body String CODEC(ZSTD(1)),
  body_type Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7),
  attributes Map(String, String),
  attribute_types Array(Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)),
  dropped_attributes_count UInt32,
  flags UInt32,
  trace_id FixedString(16),
  span_id FixedString(8),
  event_name String,
  session_id String,
  INDEX logs_by_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
  INDEX logs_by_word lower(body) TYPE text(tokenizer = splitByNonAlpha)
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, service_name, timestamp)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  string_serialization_version = 'single_stream',
  non_replicated_deduplication_window = 1000000;
