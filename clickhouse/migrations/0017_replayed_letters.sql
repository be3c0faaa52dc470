-- A dead letter that is replayed gets a row for each attempt. The last one counts: what became of the request, why, and
-- what of it is stored. The request as it was sent is attempt 0 (docs/api/dead-letters.md#replay-letters).
ALTER TABLE dead_letters
  ADD COLUMN IF NOT EXISTS attempt UInt32,
  -- When the letter was replayed; zero in attempt 0.
  ADD COLUMN IF NOT EXISTS replayed_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  -- dead, or stored.
  ADD COLUMN IF NOT EXISTS outcome LowCardinality(String) DEFAULT 'dead';

-- When the requests of a row were replayed from their dead letters; zero for requests as clients sent them. A request that
-- was replayed has one row for each attempt besides its first one.
ALTER TABLE ingest_log
  ADD COLUMN IF NOT EXISTS replayed_at DateTime64(3, 'UTC') CODEC(Delta, LZ4);
