-- Which requests a row is about, so that what became of one can be asked for by its receipt.
--
-- A request's receipt is its commit (12 bytes that begin with the time of its first request, within seconds of received_at)
-- and its index there. A row has one commit: jobs are never joined. Zeros and no index in rows of before.
-- refused: those of them that are not stored, with the reason; object_key is empty for those that are not kept either.
ALTER TABLE ingest_log
  ADD COLUMN IF NOT EXISTS receipt_commit FixedString(12) CODEC(ZSTD(1)),
  ADD COLUMN IF NOT EXISTS receipt_indexes Array(UInt32) CODEC(ZSTD(1)),
  ADD COLUMN IF NOT EXISTS refused Array(Tuple(index UInt32, reason String, object_key String)) CODEC(ZSTD(1));
