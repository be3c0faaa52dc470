-- KEYS record, pointer, index, releases without a manifest, stored maps, then nothing or notes of removed releases. ARGV slug, then
-- nothing or time of creation, sequence of the manifest (0 without one) and note: with these, only this release is removed.
-- Returns whether there was a record.
--
-- A Redis that is full takes the note, because the first command frees memory. A release takes its part of the stored maps with
-- it, all if it was the last. Which ones does not matter: a map that is forgotten is uploaded once more, and the manifest that
-- names the maps of this release is not in Redis.
if ARGV[2] then
  if tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1]) or -1) ~= tonumber(ARGV[2]) then return 0 end
  local pointer = redis.call('GET', KEYS[2])
  if (pointer and cjson.decode(pointer).sequence or 0) ~= tonumber(ARGV[3]) then return 0 end
  redis.call('DEL', KEYS[2])
  redis.call('SADD', KEYS[6], ARGV[4])
end
local removed = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
local left = redis.call('ZCARD', KEYS[3])
if left == 0 then redis.call('UNLINK', KEYS[5])
elseif removed == 1 then redis.call('SPOP', KEYS[5], math.ceil(redis.call('SCARD', KEYS[5]) / (left + 1))) end
return removed
