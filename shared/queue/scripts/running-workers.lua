-- KEYS heartbeats, loads. Returns the names of the processes that run, then their loads in the same order.
local now = redis.call('TIME')
local names = redis.call('ZRANGEBYSCORE', KEYS[1], now[1] * 1000, '+inf')
if #names == 0 then return {names, {}} end
return {names, redis.call('HMGET', KEYS[2], unpack(names))}
