-- What builds report of their uploads, one row per report (spec 4.8). An amount that was not sent is NULL: 0 is a report
-- of its own, of an upload without files say.
CREATE TABLE IF NOT EXISTS build_reports
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  -- As the path of the request had it: a report may come before its release, or of none.
  release_slug String,
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  -- Empty when it was not sent.
  result LowCardinality(String),
  discover Nullable(UInt64),
  create_release Nullable(UInt64),
  upload Nullable(UInt64),
  cleanup Nullable(UInt64),
  total Nullable(UInt64),
  file_count Nullable(UInt64),
  total_bytes Nullable(UInt64),
  preflight Nullable(UInt64)
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, release_slug, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000000;
