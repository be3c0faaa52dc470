-- KEYS index. ARGV limit, then time and slug of the last release seen (empty for the beginning). Returns slugs and times in turn.
-- If that release was deleted, all releases of its millisecond are returned again, so that none is left out.
local first = 0
if ARGV[3] ~= '' then
  local rank = redis.call('ZREVRANK', KEYS[1], ARGV[3])
  first = rank and rank + 1 or redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[2], '+inf')
end
return redis.call('ZREVRANGE', KEYS[1], first, first + ARGV[1] - 1, 'WITHSCORES')
