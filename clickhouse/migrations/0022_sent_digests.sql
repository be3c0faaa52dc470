-- SHA-256 of a replay chunk as its client sent it, compressed or not; zeros in rows of earlier versions. `sha256` is that of the
-- decompressed bytes.
ALTER TABLE replay_chunks
  ADD COLUMN IF NOT EXISTS sent_sha256 FixedString(32) AFTER sha256;
