-- How many requests of each hour of arrival the edges have accepted, acknowledged, refused or left unconfirmed, by surface and
-- kind. Redis counts them; a copy is written again and again while the numbers grow, and the largest one counts.
CREATE TABLE IF NOT EXISTS request_counts
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  signal LowCardinality(String),
  outcome LowCardinality(String),
  received_hour DateTime('UTC'),
  requests SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(received_hour)
ORDER BY (workspace_id, surface_id, received_hour, signal, outcome)
TTL toDate(received_hour) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

-- Rows in tables besides the one of the records: exceptions of spans and log records, heartbeats of sessions.
ALTER TABLE ingest_log ADD COLUMN IF NOT EXISTS derived_rows UInt64 CODEC(Delta, LZ4);
