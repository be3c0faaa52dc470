-- One row per received data point of every kind, filled by workers/otlp/metrics/ in the order of
-- clickhouse/tables/metric-points-table.ts.
--
-- metadata is a JSON object. A point's value is as_int or as_double, as value_type says; `value` is either, or NULL.
-- sum is NULL where it was not sent (flags: bit 0 says that nothing was recorded).
-- origin, attribute_keys, attribute_values: as `spans`.
-- bounds, counts: the lists of an explicit histogram as bytes, eight a number. explicit_bounds and bucket_counts read them.
-- exponential: of an exponential histogram the scale, both offsets and the number of its positive buckets (four bytes each), the
--   count of zeros, then the counts of positive and of negative buckets (eight bytes each). The columns after it read it.
-- details: exemplars, min, max, quantiles and the threshold of zeros (clickhouse/tables/point-details.ts), which no query reads.
-- series_id is the same for all points of one series: workspace, surface, resource, scope, name, unit, type, temporality,
--   monotonicity and the attributes in any order (workers/otlp/metrics/series-id.ts).
-- ORDER BY: dashboards ask for one series over time, and for a metric's series grouped by a label. Hours before series
--   bound both: a series is read in a place or two per hour however many others there are, a label reads its hours
--   instead of the day. 5 million points of a day in one part, of a metric with 1,000 series:
--     key                                  one series, a day    a label, an hour    a label, a day
--     (workspace, metric, series, time)      14,000 rows 5 ms   844,000 rows 28 ms  850,000 rows 38 ms
--     (workspace, metric, hour, series, …)  399,000 rows 9 ms    41,000 rows 7 ms   850,000 rows 65 ms
-- PRIMARY KEY ends before the time: with it, a condition on time_unix_nano would not be carried over to its hour.
-- One table, without one of series beside it that would hold the texts and attributes: a label of a day would take 20 ms
--   instead of 65, and a point 1 CPU s per million less; but a batch has a point or two of each of its series, so that
--   the other table, filled by a view, costs 0.1 s (16 points of a series in each batch) to 2 s (one).
-- LowCardinality where it shortens or is asked by. A merge takes rows one by one from interleaved parts, which is slow with
--   dictionaries and with nested types. CPU s a million points, ten inserts of 50,000 and their merge into one, three of these into
--   one, and bytes a point:
--     form                                              insert    first    second    bytes
--     map, lists, and columns of resource and scope       1.46     2.56      0.95     16.3
--     packed attributes and origin, no exemplars          0.89     2.13      0.59     15.4
--     packed lists of buckets too                         0.79     2.34      0.65     12.3
--     service and lists of keys as plain texts            0.78     1.67      0.60     12.7
--     the hour before the metric in the key               0.85     1.96      0.65     15.2
--   Lists of keys are a dictionary: a label is found in them once for each list, in half the time of plain texts. Int and double
--   in one column, a sum without NULL, and unit and description as one text saved nothing.
-- merge_selector_base: 10 parts instead of 5 are merged at once, so rows are rewritten less often: 2.0 CPU s per million
--   points with merges instead of 2.5, in the first 6 million.
-- Days of arrival, compact parts, and statistics: as `spans`.
CREATE TABLE IF NOT EXISTS metric_points
(
  workspace_id LowCardinality(String),
  surface_id String,
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  service_name String,
  origin LowCardinality(String),
  metric_name LowCardinality(String),
  description String,
  unit String,
  metadata String,
  type Enum8('gauge' = 1, 'sum' = 2, 'histogram' = 3, 'exponential_histogram' = 4, 'summary' = 5),
  aggregation_temporality Enum8('unspecified' = 0, 'delta' = 1, 'cumulative' = 2),
  is_monotonic Bool,
  series_id UInt64,
  start_time_unix_nano UInt64 CODEC(Delta, LZ4),
  time_unix_nano UInt64 CODEC(Delta, LZ4),
  attribute_keys LowCardinality(String),
  attribute_values String,
  flags UInt32,
  value_type Enum8('none' = 0, 'int' = 1, 'double' = 2),
  as_int Int64,
  as_double Float64,
  value Nullable(Float64) ALIAS multiIf(value_type = 'int', toFloat64(as_int), value_type = 'double', as_double, NULL),
  count UInt64,
  sum Nullable(Float64),
  bounds String,
  counts String,
  explicit_bounds Array(Float64) ALIAS reinterpret(bounds, 'Array(Float64)'),
  bucket_counts Array(UInt64) ALIAS reinterpret(counts, 'Array(UInt64)'),
  exponential String,
  scale Int32 ALIAS reinterpretAsInt32(substring(exponential, 1, 4)),
  positive_offset Int32 ALIAS reinterpretAsInt32(substring(exponential, 5, 4)),
  negative_offset Int32 ALIAS reinterpretAsInt32(substring(exponential, 9, 4)),
  zero_count UInt64 ALIAS reinterpretAsUInt64(substring(exponential, 17, 8)),
  positive_bucket_counts Array(UInt64)
    ALIAS reinterpret(substring(exponential, 25, 8 * reinterpretAsUInt32(substring(exponential, 13, 4))), 'Array(UInt64)'),
  negative_bucket_counts Array(UInt64)
    ALIAS reinterpret(substring(exponential, 25 + 8 * reinterpretAsUInt32(substring(exponential, 13, 4))), 'Array(UInt64)'),
  details String
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
PRIMARY KEY (workspace_id, metric_name, intDiv(time_unix_nano, 3600000000000), series_id)
ORDER BY (workspace_id, metric_name, intDiv(time_unix_nano, 3600000000000), series_id, time_unix_nano)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  string_serialization_version = 'single_stream',
  merge_selector_base = 10,
  auto_statistics_types = '';
