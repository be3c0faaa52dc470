#!lua flags=allow-oom
-- KEYS the failed jobs of each lane, then for each payload its job in each lane. ARGV number of lanes, then the job ids.
-- Returns the ids without a live job. A job that has failed for good is deleted after it was removed from the failed jobs,
-- since another sweeper may have added its successor meanwhile.
local lanes = tonumber(ARGV[1])
local hasFailed = {}
for lane = 1, lanes do hasFailed[lane] = redis.call('ZCARD', KEYS[lane]) > 0 end
local without = {}
for i = 2, #ARGV do
  local isLive = false
  for lane = 1, lanes do
    local job = KEYS[(i - 1) * lanes + lane]
    if hasFailed[lane] and redis.call('ZREM', KEYS[lane], ARGV[i]) == 1 then redis.call('DEL', job)
    elseif redis.call('EXISTS', job) == 1 then isLive = true end
  end
  if not isLive then table.insert(without, ARGV[i]) end
end
return without
