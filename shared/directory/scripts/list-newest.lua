-- KEYS index. ARGV limit, time and id of the last record seen. Returns ids and times, and within one millisecond the greatest id
-- first.
local limit = tonumber(ARGV[1])
local found = {}
local offset = 0
while #found < 2 * limit do
  local page = redis.call('ZRANGE', KEYS[1], ARGV[2], '-inf', 'BYSCORE', 'REV', 'LIMIT', offset, limit, 'WITHSCORES')
  if #page == 0 then break end
  for i = 1, #page, 2 do
    local isAfter = ARGV[3] == '' or tonumber(page[i + 1]) < tonumber(ARGV[2]) or page[i] < ARGV[3]
    if isAfter and #found < 2 * limit then
      table.insert(found, page[i])
      table.insert(found, page[i + 1])
    end
  end
  offset = offset + limit
end
return found
