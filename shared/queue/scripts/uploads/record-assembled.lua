-- Records that the map of these parts is stored, so that they are no longer needed. Returns 0 if a claim has changed.
-- KEYS parts. ARGV the record of the assembled map, then the claims of the parts in order.
for i = 2, #ARGV do
  if redis.call('HGET', KEYS[1], i - 2) ~= ARGV[i] then return 0 end
end
redis.call('HSET', KEYS[1], 'assembled', ARGV[1])
return 1
