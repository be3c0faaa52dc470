-- One row per received log record, filled by workers/otlp/logs/ in the order of clickhouse/tables/logs-table.ts.
--
-- timestamp is what rows are ordered and asked by: the time of the record, else the time it was observed, else its
--   arrival, which also replaces one of more than five minutes after it; the two times stand beside it as they were sent.
-- ORDER BY: dashboards ask for a service over a time. Records of a service arrive in the order of their times, so that merges copy
--   long runs. A bucket of the time first (1, 5, 60 minutes) merged no cheaper, and the newest records of a service over a day
--   took 238,000 to 360,000 rows of 3.6 million instead of 16,000. Days of arrival, compact parts and statistics: as `spans`.
-- origin, attribute_keys, attribute_values: as `spans`. CPU s a million records, ten inserts of 50,000 and their merge into one,
--   three of these into one, and bytes a record:
--     form                                            insert    first    second    bytes
--     map, and columns of resource and scope            1.86     1.80      1.29     50.7
--     packed                                            1.39     1.73      1.37     45.4
--     packed, the filter of words built by merges       1.07     1.73      1.37     45.4
--     packed, without the filter of attributes          1.38     1.34      1.19     44.1
--     packed, without any index                         1.05     1.04      0.95     40.1
--   Body type, dropped attributes and event name in one packed column saved nothing. Hashes of values without their keys would
--   save 0.13 a merge, and find as many rows as have the value in another attribute.
-- Zero trace_id and span_id: the record belongs to no trace.
-- body ZSTD(1): 40 % less than LZ4, for no more CPU.
-- logs_by_trace: the records of one trace among 5 million in 4.5 ms (8.4 without it), as with a projection by trace, which
--   takes eight times the disk.
-- logs_by_token: a Bloom filter of words for every 8,192 records. Ask with hasToken(lower(body), 'connection') for each word,
--   in lower case, no separators in it: hasAllTokens does not use this index. Four million records, 2.7 of them of the workspace
--   asked for:
--     index         rare word   rare, any workspace   frequent word by minute   bytes a record   CPU s, 1st merge of a million
--     none              93 ms                149 ms                    139 ms                                            1.4
--     tokenbf_v1        11 ms                 12 ms                    134 ms              4.4                           1.7
--     text               8 ms                  7 ms                     15 ms             28.3                           3.7
--   The text index took 1.1 CPU s a million records to insert besides, and 1.6 to 2.3 for each further merge. The filters are
--   read whole, where the text index is read in a few places: with a hundred times the records, bound a search by time. Two
--   hash functions instead of three leave five granules for one, at the same cost.
-- by_attribute: as for spans; 1.2 bytes a record. The first merge builds it and logs_by_token (clickhouse/client.ts).
-- by_session: the session of a record may be that of its resource, which no attribute of the record has.
-- logs_by_time: the first and last time of the records of a granule. The primary key has services before times, and a granule
--   of small services has all of their times, so that a search of an hour without a service read every record of a workspace.
--   Parts have the records of a few hours until the merge of a past day, and then most granules have one service, whose times
--   the key bounds. 16 bytes for each 8,192 records; the rows read are in docs/performance.md.
-- merge_selector_base: as for spans. With the filter of words, 8.4 to 3.1 CPU s a million; a page of logs is read in 15.0 ms
--   instead of 12.8.
CREATE TABLE IF NOT EXISTS logs
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  service_name LowCardinality(String),
  origin LowCardinality(String),
  timestamp DateTime64(9, 'UTC') CODEC(Delta, LZ4),
  time_unix_nano UInt64 CODEC(Delta, LZ4),
  observed_time_unix_nano UInt64 CODEC(Delta, LZ4),
  severity_number UInt8,
  severity_text String,
  body String CODEC(ZSTD(1)),
  body_type Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7),
  attribute_keys LowCardinality(String),
  attribute_values String CODEC(ZSTD(1)),
  dropped_attributes_count UInt32,
  flags UInt32,
  trace_id FixedString(16),
  span_id FixedString(8),
  event_name String,
  session_id String,
  INDEX logs_by_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1,
  INDEX logs_by_token lower(body) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 1,
  INDEX by_attribute arrayMap((k, v) -> cityHash64(k, v), arrayPopFront(arrayPopBack(splitByChar('\0', attribute_keys))),
    arrayResize(splitByChar('\0', attribute_values), length(arrayPopFront(arrayPopBack(splitByChar('\0', attribute_keys)))))) TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX logs_by_time timestamp TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, service_name, timestamp)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  string_serialization_version = 'single_stream',
  merge_selector_base = 10,
  auto_statistics_types = '';
