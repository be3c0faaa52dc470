-- Rows that were deleted on purpose, so that an audit can tell them from rows that are lost: what was stored is what is in the
-- tables and what is counted here. Whole days that leave a table by its TTL are not counted.
CREATE TABLE IF NOT EXISTS deleted_rows
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  -- The hour in which the rows had arrived (received_at).
  received_hour DateTime('UTC'),
  table_name LowCardinality(String),
  -- expired: the retention of the workspace; erased: a person or a session; purged: dead letters that were removed.
  reason LowCardinality(String),
  rows UInt64,
  deleted_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree
PARTITION BY toDate(received_hour)
ORDER BY (workspace_id, surface_id, received_hour, table_name)
TTL toDate(received_hour) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 100000;
