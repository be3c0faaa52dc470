-- Declares maps of a release, all of them or none. Returns 'declared', 'too_many_paths', 'too_many_bytes' or 'over_budget'.
-- KEYS declared maps, staged maps of the workspace, their bytes, then the budget of the workspace (sums, ends, sealed). ARGV path
-- limit, byte limit, name of the release in the budget, then a path, its record and its staged member (or nothing) in turn.
-- An object that is declared again counts once. Staged maps that are forgotten make room first, a part of them at a time.
--- @include "uploads/budget"
local paths = redis.call('HLEN', KEYS[1])
local memory = paths == 0 and HASH_BYTES or 0
for i = 4, #ARGV, 3 do
  local before = redis.call('HSTRLEN', KEYS[1], ARGV[i])
  if before == 0 then
    paths = paths + 1
    memory = memory + declaredBytes(ARGV[i], 0)
  end
  memory = memory + #ARGV[i + 1] - before
end
if paths > tonumber(ARGV[1]) then return 'too_many_paths' end
local now = tonumber(redis.call('TIME')[1])
local bytes = tonumber(redis.call('GET', KEYS[3]) or '0')
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 4000)) do
  redis.call('ZREM', KEYS[2], member)
  bytes = bytes - tonumber(string.match(member, '^%d+'))
end
local added = 0
for i = 6, #ARGV, 3 do
  if ARGV[i] ~= '' and not redis.call('ZSCORE', KEYS[2], ARGV[i]) then
    added = added + tonumber(string.match(ARGV[i], '^%d+'))
  end
end
local outcome = 'declared'
if added > 0 and bytes + added > tonumber(ARGV[2]) then outcome = 'too_many_bytes'
elseif not chargeUpload(KEYS[4], KEYS[5], KEYS[6], ARGV[3], memory) then outcome = 'over_budget'
else
  bytes = bytes + added
  for i = 4, #ARGV, 3 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    if ARGV[i + 2] ~= '' then redis.call('ZADD', KEYS[2], now + UPLOAD_LIFETIME_S, ARGV[i + 2]) end
  end
  redis.call('EXPIRE', KEYS[1], UPLOAD_LIFETIME_S)
  redis.call('EXPIRE', KEYS[2], UPLOAD_LIFETIME_S)
end
redis.call('SET', KEYS[3], string.format('%.0f', bytes), 'EX', UPLOAD_LIFETIME_S)
return outcome
