-- Accepts a payload (decide.lua). With an eighth key, `open`, other requests may join it until a worker reads it.
--- @include "decide"
return decide(function()
  accept()
  if KEYS[8] then redis.call('SADD', KEYS[8], ARGV[2]) end
end)
