#!lua flags=allow-oom
-- Claims letters for good, but for those that are being replayed, whose positions it returns.
-- KEYS the claims of each letter. ARGV the time before which all replays are settled or lost, then for each letter: index,
-- settled attempt, expiry of the claim.
--- @include "letters/letter-claims"
local taken = {}
for i = 1, #KEYS do
  local at = 3 * i - 1
  if redis.call('HGET', KEYS[i], ARGV[at]) ~= 'purged' then
    if isTaken(KEYS[i], ARGV[at], ARGV[at + 1], ARGV[1]) then table.insert(taken, i - 1)
    else claim(KEYS[i], ARGV[at], 'purged', ARGV[at + 2]) end
  end
end
return taken
