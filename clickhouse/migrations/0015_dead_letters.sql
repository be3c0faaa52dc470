-- The index of the dead letters: one row for each request that is kept because it, or some of its records, could not be
-- stored. The bytes are in the object store: `object_length` bytes at `object_offset` of the object are one payload frame,
-- with the body as it was sent and all its attributes (docs/api/dead-letters.md#dead-letters).
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
  rejected_records Array(Tuple(index UInt32, reason String)) CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, received_at, job_id, job_index)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000000;

-- What a receipt reports of a request that is stored without some of its records, and of dead letters over the bound of
-- their surface and day. Rows of before have none of it.
-- rejections: the records left out, with the key of the dead letter; empty if it was discarded.
-- discarded, discarded_indexes: dead letters that are not kept, by reason, and the requests they were.
ALTER TABLE ingest_log
  ADD COLUMN IF NOT EXISTS discarded Map(LowCardinality(String), UInt64) CODEC(ZSTD(1)),
  ADD COLUMN IF NOT EXISTS discarded_indexes Array(UInt32) CODEC(ZSTD(1)),
  ADD COLUMN IF NOT EXISTS rejections Array(Tuple(index UInt32, reason String, records UInt64, object_key String)) CODEC(ZSTD(1));
