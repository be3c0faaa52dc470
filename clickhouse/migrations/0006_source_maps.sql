-- The frames of a finding as one version of its service threw them, resolved through source maps where there are any.
-- Filled by workers/symbolication; a row per finding, version and day of arrival remains.
CREATE TABLE IF NOT EXISTS finding_frames
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  variant_id FixedString(16),
  -- `service.version` as the exception said it; may be empty.
  service_version LowCardinality(String),
  -- Of service_version; where that is empty, of the maps that resolved a frame; else empty.
  release_slug String,
  received_at DateTime64(3, 'UTC'),
  occurred_at_unix_nano UInt64,
  symbolicated_at DateTime64(3, 'UTC'),
  -- Which of two resolutions holds: one that resolved a frame (2^63) over one that did not, then the one that knew the
  -- later manifest (its sequence). So a slow worker that looked before a manifest held never hides what came after it.
  rank UInt64,
  -- Frames that stand in a script with line and column: what a source map could resolve.
  frame_count UInt16,
  resolved_frame_count UInt16,
  -- JSON: an array of findingFrameSchema (schemas/http/findings/), innermost first.
  frames String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, variant_id)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- How many frames of a release were resolved: read by release, without the workspace's other rows or any text.
CREATE TABLE IF NOT EXISTS release_frames
(
  day Date,
  workspace_id LowCardinality(String),
  release_slug String,
  variant_id FixedString(16),
  rank UInt64,
  frame_count UInt16,
  resolved_frame_count UInt16
)
ENGINE = ReplacingMergeTree(rank)
PARTITION BY day
ORDER BY (workspace_id, release_slug, variant_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS release_frames_from_finding_frames TO release_frames AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  release_slug,
  variant_id,
  rank,
  frame_count,
  resolved_frame_count
FROM finding_frames
WHERE release_slug != '';

-- Source maps by the debug id of their script. Not by day: a build throws for as long as it is deployed.
CREATE TABLE IF NOT EXISTS source_maps
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  -- A lower-case UUID with dashes.
  debug_id String,
  release_slug String,
  -- Of the manifest that names the map: of one debug id the latest holds.
  sequence UInt64,
  sha256 FixedString(64),
  size UInt32,
  chunk_url String,
  path String,
  completed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(sequence)
ORDER BY (workspace_id, debug_id, surface_id, release_slug);

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
SETTINGS ttl_only_drop_parts = 1;
