-- A claim of a letter is `<attempt> <time of Redis in ms>` once it was replayed, and `purged` for good. It is taken if it is of
-- a later attempt than the last one that is settled, as the caller has read it. A replay from before `lostBefore` without an
-- outcome was lost, and takes nothing.
local function isTaken(key, index, settled, lostBefore)
  local claim = redis.call('HGET', key, index)
  if not claim then return false end
  if claim == 'purged' then return true end
  local attempt, time = string.match(claim, '^(%d+) (%d+)$')
  return tonumber(attempt) > tonumber(settled) and tonumber(time) >= tonumber(lostBefore)
end
local function claim(key, index, value, expiresAt)
  redis.call('HSET', key, index, value)
  if tonumber(expiresAt) > redis.call('PEXPIRETIME', key) then redis.call('PEXPIREAT', key, expiresAt) end
end
