-- One row per received data point of every kind, filled by workers/otlp/metrics.ts in the order of
-- clickhouse/metric-points-table.ts.
--
-- metadata is JSON, as resource is. A point's value is as_int or as_double, as value_type says; `value` is either, or NULL.
-- sum, min and max are NULL where they were not sent (flags: bit 0 says that nothing was recorded).
-- series_id is the same for all points of one series: workspace, surface, resource, scope, name, unit, type, temporality,
--   monotonicity and the attributes in any order (workers/otlp/series-id.ts).
-- ORDER BY: dashboards ask for one series over time, and for a metric's series grouped by a label. Hours before series
--   bound both. 5 million points of a day in one part, metrics of 1,000 series, rows read and time:
--     key                              one series, a day    a label, an hour    a label, a day
--     (workspace, metric, series, time)     14,000   5 ms     844,000   28 ms   850,000   38 ms
--     (workspace, metric, hour, …)         399,000   9 ms      41,000    7 ms   850,000   65 ms
--   One series reads a place or two per hour however many series there are; a label reads its hours instead of the day.
-- One table: of the CPU, 1.6 s per million points on insert (of it 0.65 for sorting, 0.45 for the attributes, 0.5 for
--   the texts of resource, scope and metric) and 0.3 to 0.5 for merges. Without those texts and attributes, which a table
--   of series would hold, it is 0.6 and 0.1, and a label of a day takes 20 ms instead of 65; but a batch has a point or
--   two of each of its series, so that table costs 1.5 to 5 s of its own, filled by a view.
-- Nullable costs what flags beside plain numbers would. Sparse columns make kinds that are rare in a part cheap.
-- Days of arrival, compact parts and the window: see 0001.
CREATE TABLE IF NOT EXISTS metric_points
(
  workspace_id LowCardinality(String),
  surface_id String,
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  service_name LowCardinality(String),
  service_version String,
  resource LowCardinality(String),
  resource_dropped_attributes_count UInt32,
  resource_schema_url String,
  scope_name String,
  scope_version String,
  scope_attributes String,
  scope_schema_url String,
  scope_dropped_attributes_count UInt32,
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
  attributes Map(String, String),
  attribute_types Array(Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)),
  flags UInt32,
  value_type Enum8('none' = 0, 'int' = 1, 'double' = 2),
  as_int Int64,
  as_double Float64,
  value Nullable(Float64) ALIAS multiIf(value_type = 'int', toFloat64(as_int), value_type = 'double', as_double, NULL),
  count UInt64,
  sum Nullable(Float64),
  min Nullable(Float64),
  max Nullable(Float64),
  explicit_bounds Array(Float64),
  bucket_counts Array(UInt64),
  scale Int32,
  zero_count UInt64,
  zero_threshold Float64,
  positive_offset Int32,
  positive_bucket_counts Array(UInt64),
  negative_offset Int32,
  negative_bucket_counts Array(UInt64),
  quantile_values Array(Tuple(quantile Float64, value Float64)),
  exemplars Array(Tuple(
    time_unix_nano UInt64,
    value_type Enum8('none' = 0, 'int' = 1, 'double' = 2),
    as_int Int64,
    as_double Float64,
    span_id String,
    trace_id String,
    filtered_attributes Map(String, String),
    filtered_attribute_types Array(Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7))))
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, metric_name, intDiv(time_unix_nano, 3600000000000), series_id, time_unix_nano)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS
  ttl_only_drop_parts = 1,
  min_level_for_wide_part = 1,
  string_serialization_version = 'single_stream',
  non_replicated_deduplication_window = 1000000;
