#!lua flags=allow-oom
-- Reserves the next free time of an insert, and returns after how many ms it comes.
-- KEYS pace. ARGV interval in ms, 1 if the batch before was full, longest wait in intervals, intervals that a pause saves.
--
-- A batch that was full has not waited for its time, so that time is given back: the next one comes an interval from now. It
-- does not come earlier by more than the interval that was reserved for the full batch, because other workers wait for theirs.
-- Where they have reserved up to the bound, nothing is given back: more of them wait than the free time shows. A free time
-- beyond the bounds is replaced by the bound, so that many workers, or a clock of Redis that was set back, delay no batch for
-- longer.
--- @include "../../runtime/redis/now"
local now = nowMs()
local interval = tonumber(ARGV[1])
local latest, saved = now + ARGV[3] * interval, ARGV[4] * interval
local free = tonumber(redis.call('GET', KEYS[1]) or 0)
if ARGV[2] == '1' and free <= latest then free = math.max(free - interval, math.min(free, now + interval)) end
local at = math.min(math.max(free, now - saved), latest)
redis.call('SET', KEYS[1], at + interval, 'PX', at - now + saved + interval)
return math.max(0, at - now)
