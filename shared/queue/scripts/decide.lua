-- Turns a payload from one that expires into one that is accepted. Payloads arrive with an expiry, so that one whose acceptance
-- never runs leaves nothing behind.
--
-- KEYS payload, flow, shares, pending, source, busy, arrivals, then those of the condition. `source` is the key with the bytes:
-- the payload itself, or the key under which the pieces of a large payload arrived. ARGV as in fence.lua, then those of the
-- condition, from ARGV[11] for the one request of a surface. The score in `pending` is the time of the fence, because watermarks
-- rest on when a request was accepted (docs/api/receipts.md#watermarks).
--- @include "fence"
local outcome = 2
local function accept()
  outcome = 1
  if KEYS[5] ~= KEYS[1] then redis.call('RENAME', KEYS[5], KEYS[1]) end
  if redis.call('PERSIST', KEYS[1]) == 0 then error('the payload is gone') end
  count(KEYS[2], KEYS[3], KEYS[6], KEYS[7])
  redis.call('ZADD', KEYS[4], now, ARGV[2])
end
local function refuse() redis.call('UNLINK', KEYS[5]) end

-- Returns the time; 0 if the commit is late, 1 if the condition has accepted it or 2 if not; then the result of the condition,
-- which calls `accept()` or `refuse()` once.
local function decide(condition)
  if isLate() then
    refuse()
    return {now, 0}
  end
  local result = condition()
  return {now, outcome, result}
end
