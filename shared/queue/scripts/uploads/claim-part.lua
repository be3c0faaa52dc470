-- Claims a part of a map and accepts its payload (decide.lua), or neither.
-- KEYS[8] parts of the path, [9] declared maps, [10] to [12] budget of the workspace (sums, ends, sealed), [13] paths with
-- claims. ARGV[11] part, [12] claim, [13] size, [14] path, [15] byte limit, [16] age in seconds up to which the object of a part
-- is there, [17] name of the release in the budget.
-- Claims do not expire while a part of them waits in the queue: its worker lets them expire (settle-part.lua). A sealed hash
-- lives as long as its manifest.
--- @include "decide"
--- @include "uploads/part-claims"
return decide(function()
  local parts, part = KEYS[8], ARGV[11]
  local sealed = redis.call('HEXISTS', parts, 'sealed') == 1
  local claim = redis.call('HGET', parts, part)
  if claim then
    local nowS = tonumber(redis.call('TIME')[1])
    local storedAt = tonumber(redis.call('HGET', parts, 'stored:' .. part) or nowS)
    if claim ~= ARGV[12] or sealed or nowS - storedAt <= tonumber(ARGV[16]) then
      refuse()
      if claim ~= ARGV[12] then return 'conflict' end
      return 'repeated'
    end
  elseif sealed then
    refuse()
    return 'sealed'
  end
  local limit = tonumber(ARGV[15])
  local declared = redis.call('HGET', KEYS[9], ARGV[14])
  if declared then limit = math.min(limit, cjson.decode(declared).size) end
  local bytes = tonumber(redis.call('HGET', parts, 'bytes') or '0') + (claim and 0 or tonumber(ARGV[13]))
  if bytes > limit then
    refuse()
    return 'too_large'
  end
  local before = redis.call('EXISTS', parts) == 1 and claimsBytes(parts, 0) or 0
  local added = claimsBytes(parts, claim and 0 or 1) - before
  if not chargeUpload(KEYS[10], KEYS[11], KEYS[12], ARGV[17], added) then
    refuse()
    return 'over_budget'
  end
  redis.call('HDEL', parts, 'stored:' .. part)
  redis.call('HSET', parts, part, ARGV[12], 'bytes', bytes, 'waits:' .. part, 1)
  redis.call('HINCRBY', parts, 'waiting', 1)
  redis.call('PERSIST', parts)
  redis.call('SADD', KEYS[13], pathOf(parts))
  redis.call('PERSIST', KEYS[13])
  accept()
  return 'claimed'
end)
