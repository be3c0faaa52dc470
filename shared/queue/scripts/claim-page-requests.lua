-- Claims numbers of a page for the requests that came with them first. A number that is claimed already belongs to the same request
-- or to an earlier one.
-- KEYS claims of the page, claims that the workspace began in this hour. ARGV lifetime in seconds, most new claims of an hour, then
-- for each request: its number, and what names the request. Returns 1 for each request that owns its number, else 0. A workspace
-- that has begun too many gets 1 for each and claims nothing.
local owns = {}
if redis.call('EXISTS', KEYS[1]) == 0 then
  local begun = redis.call('INCR', KEYS[2])
  if begun == 1 then redis.call('EXPIRE', KEYS[2], 7200) end
  if begun > tonumber(ARGV[2]) then
    for i = 3, #ARGV, 2 do table.insert(owns, 1) end
    return owns
  end
end
for i = 3, #ARGV, 2 do
  local isNew = redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
  if isNew == 0 and redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then isNew = 1 end
  table.insert(owns, isNew)
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return owns
