-- What became of the requests of one job and surface; `stored_at - received_at` is the age that data had when it could be read.
-- A request that was replayed from its dead letter has one row for each attempt besides its first one.
--
-- A request's receipt is its commit (12 bytes that begin with the time of its first request, within seconds of received_at)
-- and its index there: what became of a request is asked for by it. A row has one commit.
-- refused: the requests that are not stored, with the reason; object_key is empty for those that are not kept either.
-- discarded, discarded_indexes: dead letters over the bound of their surface and day, which are not kept, by reason, and the
--   requests they were.
-- rejections: the records left out of a request that is stored, with the key of the dead letter; empty if it was discarded.
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
  dead_lettered Map(LowCardinality(String), UInt64),
  receipt_commit FixedString(12) CODEC(ZSTD(1)),
  receipt_indexes Array(UInt32) CODEC(ZSTD(1)),
  refused Array(Tuple(index UInt32, reason String, object_key String)) CODEC(ZSTD(1)),
  discarded Map(LowCardinality(String), UInt64) CODEC(ZSTD(1)),
  discarded_indexes Array(UInt32) CODEC(ZSTD(1)),
  rejections Array(Tuple(index UInt32, reason String, records UInt64, object_key String)) CODEC(ZSTD(1)),
  -- Zero for requests as clients sent them.
  replayed_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  -- Rows in tables besides the one of the records: exceptions of spans and log records, heartbeats of sessions.
  derived_rows UInt64 CODEC(Delta, LZ4),
  -- Values that scrubbing replaced, by the name of the rule. It counts what is stored, as rows does.
  scrubbed Map(String, UInt64) CODEC(ZSTD(1)),
  -- Records that rules dropped, by the name of the rule. For spans also the hashes of their traces (shared/ids/trace-hash.ts), one for
  -- each span, up to a bound: the verdict on a trace states which spans of it were dropped.
  dropped Map(String, UInt64) CODEC(ZSTD(1)),
  dropped_spans Map(String, Array(UInt32)) CODEC(ZSTD(1)),
  -- Requests that pages have numbered, without repeated ones. A session is the first 16 bytes of the SHA-256 of its id, so that the
  -- log names no session that was erased.
  page_requests Array(Tuple(session_hash FixedString(16), page_id String, sequence UInt32)) CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, surface_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

-- The numbers of the requests of the pages of a session: one that is missing below the last one has not arrived.
CREATE TABLE IF NOT EXISTS page_requests
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  session_hash FixedString(16),
  page_id String,
  sequence UInt32 CODEC(Delta, LZ4),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4)
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, session_hash, page_id, sequence)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS page_requests_from_ingest_log TO page_requests AS
SELECT
  workspace_id,
  surface_id,
  request.session_hash AS session_hash,
  request.page_id AS page_id,
  request.sequence AS sequence,
  received_at
FROM ingest_log
ARRAY JOIN page_requests AS request;

-- The index of the dead letters: one row for each request that is kept because it, or some of its records, could not be
-- stored. The bytes are in the object store: `object_length` bytes at `object_offset` of the object are one payload frame,
-- with the body as it was sent and all its attributes (docs/api/dead-letters.md#dead-letters).
--
-- A dead letter that is replayed gets a row for each attempt. The last one counts: what became of the request, why, and
-- what of it is stored. The request as it was sent is attempt 0 (docs/api/dead-letters.md#replay-letters).
CREATE TABLE IF NOT EXISTS dead_letters
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  -- The queue that refused the request.
  queue LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  refused_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  indexed_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, LZ4),
  reason LowCardinality(String),
  detail String CODEC(ZSTD(1)),
  -- The 16 bytes of the receipt; zeros if no client has one.
  receipt FixedString(16),
  -- The job that contained the request and its position there, which together identify the letter.
  job_id String,
  job_index UInt32,
  -- The session that the request names outside its body (replay); else empty.
  session_id String,
  -- Empty if the object store refuses the letter in every form.
  object_key String CODEC(ZSTD(1)),
  object_offset UInt64,
  object_length UInt64,
  body_bytes UInt64,
  -- Tables that contain the rows of the request already.
  stored_tables Array(LowCardinality(String)),
  -- If records are rejected, all others of the request are stored: this many.
  stored_records UInt64,
  -- Number of rejected records by reason, and the positions of the first 1,000 for each reason.
  rejected Map(String, UInt64),
  rejected_records Array(Tuple(index UInt32, reason String)) CODEC(ZSTD(1)),
  attempt UInt32,
  -- When the letter was replayed; zero in attempt 0.
  replayed_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  -- dead, or stored.
  outcome LowCardinality(String) DEFAULT 'dead'
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, received_at, job_id, job_index)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

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
SETTINGS ttl_only_drop_parts = 1;

-- How many requests of each hour of arrival the edges have accepted, acknowledged, refused or left unconfirmed, by surface and
-- kind. Redis counts them; a copy is written again and again while the numbers grow, and the largest one counts.
CREATE TABLE IF NOT EXISTS request_counts
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  signal LowCardinality(String),
  outcome LowCardinality(String),
  received_hour DateTime('UTC'),
  -- The queue and the epoch of its Redis in which they were counted: the counts of several places add up.
  place LowCardinality(String),
  requests SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(received_hour)
ORDER BY (workspace_id, surface_id, received_hour, signal, outcome, place)
TTL toDate(received_hour) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

-- The installation that the tables belong to, and the epochs of its queues (schemas/records/installation.ts). The latest row counts.
CREATE TABLE IF NOT EXISTS installation
(
  id String,
  epochs Map(String, String),
  written_at DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC')
)
ENGINE = MergeTree
ORDER BY written_at;
