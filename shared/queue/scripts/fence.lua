-- Fence and counts of a commit of the edge. ARGV deadline in Unix ms, job id, arrival of the first frame, frames, bytes,
-- cost, n, then n triples of a surface, its cost and its requests. All frames have arrived in one hour.

--- @include "../../runtime/redis/now"
-- The time of the fence.
local now

-- The fence: Redis may run a commit long after its clients were answered 503 and sent their requests again. Such a commit is
-- refused by Redis' own clock.
local function isLate()
  now = nowMs()
  return now > tonumber(ARGV[1])
end

-- Counts accepted requests. `busy` keeps when a surface had no unfinished request last, until it has none again (finish.lua),
-- and `arrivals` how many requests of each hour of arrival were accepted, which an audit compares with what is stored.
local function count(flow, shares, busy, arrivals)
  redis.call('HINCRBY', flow, 'acceptedPayloads', ARGV[4])
  redis.call('HINCRBY', flow, 'acceptedBytes', ARGV[5])
  redis.call('HINCRBY', flow, 'acceptedCost', ARGV[6])
  local hour = math.floor(ARGV[3] / 3600000)
  for i = 8, 7 + 3 * ARGV[7], 3 do
    local cost = redis.call('ZINCRBY', shares, ARGV[i + 1], ARGV[i])
    if tonumber(cost) == tonumber(ARGV[i + 1]) then redis.call('HSET', busy, ARGV[i], now) end
    redis.call('HINCRBY', arrivals, hour .. '/' .. ARGV[i] .. '/accepted', ARGV[i + 2])
  end
end
