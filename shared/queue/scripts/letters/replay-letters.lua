#!lua
-- Accepts a payload of replayed letters and claims the letters, or does nothing. Redis does not run it when its memory is full.
-- KEYS payload, its pieces, pending, flow, shares, batchOf, batches, then the claims of each letter.
-- ARGV job id, payload (empty if it arrived in pieces), frames, bytes, cost, member of the surface, limits of the surface and
-- the queue, batch id (empty for none), its record, then for each letter: index, settled attempt, next attempt, expiry of the
-- claim.
-- Returns the letters that are taken, 'busy' or 'gone'; or nothing, and then the payload is accepted.
--- @include "../../runtime/redis/now"
--- @include "letters/letter-claims"
local taken = {}
for i = 8, #KEYS do
  local at = 11 + 4 * (i - 8)
  if isTaken(KEYS[i], ARGV[at], ARGV[at + 1], 0) then table.insert(taken, i - 8) end
end
if #taken > 0 then return taken end
local cost = tonumber(ARGV[5])
local used = tonumber(redis.call('HGET', KEYS[4], 'acceptedCost') or 0) - tonumber(redis.call('HGET', KEYS[4], 'doneCost') or 0)
local own = tonumber(redis.call('ZSCORE', KEYS[5], ARGV[6]) or 0)
if own > 0 and own + cost > tonumber(ARGV[7]) then return 'busy' end
if used > 0 and used + cost > tonumber(ARGV[8]) then return 'busy' end
if ARGV[2] == '' then
  if redis.call('EXISTS', KEYS[2]) == 0 then return 'gone' end
  redis.call('RENAME', KEYS[2], KEYS[1])
  redis.call('PERSIST', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
local now = nowMs()
redis.call('ZADD', KEYS[3], now - now % 1000, ARGV[1])
redis.call('HINCRBY', KEYS[4], 'acceptedPayloads', ARGV[3])
redis.call('HINCRBY', KEYS[4], 'acceptedBytes', ARGV[4])
redis.call('HINCRBY', KEYS[4], 'acceptedCost', ARGV[5])
redis.call('ZINCRBY', KEYS[5], ARGV[5], ARGV[6])
if ARGV[9] ~= '' then
  redis.call('HSET', KEYS[6], ARGV[1], ARGV[9])
  redis.call('HSET', KEYS[7], ARGV[9], ARGV[10])
end
for i = 8, #KEYS do
  local at = 11 + 4 * (i - 8)
  claim(KEYS[i], ARGV[at], ARGV[at + 2] .. ' ' .. now, ARGV[at + 3])
end
return taken
