-- Adds requests to a payload that no worker has read. Their frames were appended to the list of the payload by the command
-- before, in the same transaction, and are removed again if they are late or a worker has read the payload.
-- KEYS joined, flow, shares, open, busy, arrivals. ARGV as in fence.lua, for the job to join.
-- Returns the time, then 0 if the commit is late, 1 if the requests have joined and 2 if they have not.
--- @include "fence"
local outcome = 1
if isLate() then outcome = 0
elseif redis.call('SISMEMBER', KEYS[4], ARGV[2]) == 0 then outcome = 2 end
if outcome == 1 then count(KEYS[2], KEYS[3], KEYS[5], KEYS[6]) else redis.call('RPOP', KEYS[1]) end
return {now, outcome}
