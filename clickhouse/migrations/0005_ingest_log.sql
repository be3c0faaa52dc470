-- What became of the requests of one job and surface; `stored_at - received_at` is the age that data had when it could be read.
CREATE TABLE IF NOT EXISTS ingest_log
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC'),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'),
  job_id String,
  signal LowCardinality(String),
  payloads UInt32,
  bytes UInt64,
  rows UInt64,
  rejected Map(LowCardinality(String), UInt64),
  dead_lettered Map(LowCardinality(String), UInt64)
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, surface_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;
