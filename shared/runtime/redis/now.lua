-- Unix ms of Redis: the clocks of two processes may differ by more than is kept.
local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
