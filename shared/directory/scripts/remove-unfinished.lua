-- Removes the first of these releases that has no manifest, and takes those that have one off the list.
-- KEYS index, releases without a manifest, then record and pointer of each release. ARGV slug of each release.
for i, slug in ipairs(ARGV) do
  redis.call('ZREM', KEYS[2], slug)
  if redis.call('EXISTS', KEYS[2 * i + 2]) == 0 then
    redis.call('DEL', KEYS[2 * i + 1])
    redis.call('ZREM', KEYS[1], slug)
    return
  end
end
