-- Sessions as their requests tell of them. Reads go by session, so its rows lie together; whole days expire.

-- One row per identify request (spec 4.1). The identity now attached is the one received last.
CREATE TABLE IF NOT EXISTS session_identities
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  session_id String,
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  identifier String,
  source_type LowCardinality(String),
  -- Of the source `custom` any text.
  source_name String,
  -- Empty texts stand for absent and null.
  device_id String,
  visitor_id String,
  fp_hash String,
  avatar String,
  email String,
  name String,
  country LowCardinality(String),
  -- JSON object, {} when absent.
  traits String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, session_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- One row per heartbeat (spec 4.2): a device's first and last are read off them.
CREATE TABLE IF NOT EXISTS session_heartbeats
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  session_id String,
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  device_id String,
  visitor_id String,
  fp_hash String
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, session_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- One row per stored replay chunk (spec 4.3): what its metadata says, and what was found in it.
CREATE TABLE IF NOT EXISTS replay_chunks
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  session_id String,
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  window_id String,
  segment_id String,
  -- The segment as a number, -1 where it is a text of another kind: gaps are told from it.
  segment_number Int64,
  first_ts_ms Int64,
  last_ts_ms Int64,
  activity_count UInt32,
  -- Counted in the chunk itself, whatever the metadata says: reading relies on it.
  event_count UInt32,
  has_full_snapshot Bool,
  first_event_ms Int64,
  last_event_ms Int64,
  stored_bytes UInt64,
  decompressed_bytes UInt64,
  -- SHA-256 of the decompressed bytes, and of the bytes as the client sent them.
  sha256 FixedString(32),
  sent_sha256 FixedString(32),
  object_key String
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, session_id, first_event_ms)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- The traces of a session, a row per day of arrival. The arrival tells times of the sender that are plausible from others.
CREATE TABLE IF NOT EXISTS session_traces
(
  day Date,
  workspace_id LowCardinality(String),
  session_id String,
  trace_id FixedString(16),
  first_start_unix_nano SimpleAggregateFunction(min, UInt64),
  last_end_unix_nano SimpleAggregateFunction(max, UInt64),
  last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  span_count SimpleAggregateFunction(sum, UInt64),
  error_count SimpleAggregateFunction(sum, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, session_id, trace_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS session_traces_from_spans TO session_traces AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  session_id,
  trace_id,
  min(start_time_unix_nano) AS first_start_unix_nano,
  max(end_time_unix_nano) AS last_end_unix_nano,
  max(received_at) AS last_received_at,
  count() AS span_count,
  countIf(status_code = 2) AS error_count
FROM spans
WHERE session_id != ''
GROUP BY day, workspace_id, session_id, trace_id;
