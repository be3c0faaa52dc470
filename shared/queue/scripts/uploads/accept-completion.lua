-- Gives a completion its number in the order of acceptance and accepts its payload (decide.lua), unless the last request of the
-- release has the same body.
-- KEYS[8] record, [9] sequence, [10] recorded digests, [11] and [12] budget of the workspace (sums, ends). ARGV[11] attempt,
-- [12] digest, [13] name of the release in the budget, [14] version of a record.
-- Returns 1 and the new record, 0 and the record of the earlier request, or nothing if the workspace has too many records.
--
-- Nothing expires before the worker is done with it. Microseconds of the clock are exact in a double until the year 2255. The
-- last sequence outlives every record that was given one. A request that was accepted before another one gets a new number,
-- because its client wants to go back to it.
--- @include "decide"
--- @include "uploads/budget"
return decide(function()
  local record = redis.call('GET', KEYS[8])
  local last = tonumber(redis.call('GET', KEYS[9]) or '0')
  if record and cjson.decode(record).sequence == last then
    refuse()
    return {0, record}
  end
  local time = redis.call('TIME')
  local bytes = RECORD_BYTES + #KEYS[8]
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', KEYS[10], '-inf', time[1], 'LIMIT', 0, 100)) do
    redis.call('ZREM', KEYS[10], expired)
    lift(KEYS[11], ARGV[13], bytes)
  end
  local added = redis.call('ZSCORE', KEYS[10], ARGV[12]) and 0 or bytes
  if not charge(KEYS[11], KEYS[12], ARGV[13], added, COMPLETIONS_MAX_BYTES) then
    refuse()
    return {}
  end
  redis.call('ZADD', KEYS[10], '+inf', ARGV[12])
  redis.call('PERSIST', KEYS[10])
  local sequence = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
  local repeats = record and string.format(',"repeats":%.0f', cjson.decode(record).sequence) or ''
  record = '{"version":' .. ARGV[14] .. ',"attempt":"' .. ARGV[11] .. '","sequence":' .. sequence .. repeats .. '}'
  redis.call('SET', KEYS[9], sequence)
  redis.call('SET', KEYS[8], record)
  accept()
  return {1, record}
end)
