-- Runs all commands of a transaction and returns 1, or runs none and returns 0 because a guard is not met.
-- KEYS all keys that are read or written. ARGV the number of guards, then each guard as command, key, field and expected reply,
-- then each command after the number of its words.
--
-- A Redis that is full refuses the first command that needs memory, and with it the script, before anything has changed. After a
-- command that frees memory has run, it refuses none: a transaction that must succeed in a full Redis begins with such a command.
local at = 2
for _ = 1, tonumber(ARGV[1]) do
  local answer
  if ARGV[at + 2] == '' then answer = redis.call(ARGV[at], ARGV[at + 1])
  else answer = redis.call(ARGV[at], ARGV[at + 1], ARGV[at + 2]) end
  if tostring(answer or '') ~= ARGV[at + 3] then return 0 end
  at = at + 4
end
while at <= #ARGV do
  local words = tonumber(ARGV[at])
  redis.call(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
end
return 1
