import { HOUR_MS } from '../../schemas/units.ts'
import type { QueueKeys } from '../../shared/queue/queue.ts'

/**
 * Lua that counts accepted requests. ARGV are those of `ACCEPT`. `busy` keeps when a surface had no unfinished request last,
 * until it has none again (SETTLE in workers/queue/payloads/payload-scripts.ts), and `arrivals` how many requests of each hour
 * of arrival were accepted, which an audit compares with what is stored.
 */
const COUNT = `
local function count(busy, arrivals)
  redis.call('HINCRBY', KEYS[2], 'acceptedPayloads', ARGV[4])
  redis.call('HINCRBY', KEYS[2], 'acceptedBytes', ARGV[5])
  redis.call('HINCRBY', KEYS[2], 'acceptedCost', ARGV[6])
  local hour = math.floor(ARGV[3] / 3600000)
  for i = 8, 7 + 3 * ARGV[7], 3 do
    local cost = redis.call('ZINCRBY', KEYS[3], ARGV[i + 1], ARGV[i])
    if tonumber(cost) == tonumber(ARGV[i + 1]) then redis.call('HSET', busy, ARGV[i], now) end
    redis.call('HINCRBY', arrivals, hour .. '/' .. ARGV[i] .. '/accepted', ARGV[i + 2])
  end
end
`

/**
 * Lua that turns a payload from one that expires into one that is accepted. Payloads arrive with an expiry, so that one
 * whose acceptance never runs leaves nothing behind.
 *
 * KEYS payload, flow, shares, pending, source, busy, arrivals; ARGV deadline in Unix ms, job id, arrival of the first frame,
 * frames, bytes, cost, n, then n triples of a surface, its cost and its requests. `source` is the key with the bytes: the
 * payload itself, or the key under which the pieces of a large payload arrived. All frames have arrived in one hour. `now` is
 * the time of the fence, by the clock of Redis. It is the score in `pending`, because watermarks rest on when a request was
 * accepted (docs/api/receipts.md#watermarks).
 */
const ACCEPT = `
local now
${COUNT}local function accept()
  if KEYS[5] ~= KEYS[1] then redis.call('RENAME', KEYS[5], KEYS[1]) end
  if redis.call('PERSIST', KEYS[1]) == 0 then error('the payload is gone') end
  count(KEYS[6], KEYS[7])
  redis.call('ZADD', KEYS[4], now, ARGV[2])
end
local function refuse() redis.call('UNLINK', KEYS[5]) end
`

/**
 * The fence: Redis may run a commit long after its clients were answered 503 and sent their requests again. Such a commit
 * is refused by Redis' own clock. Returns the time, then 0 for a late commit.
 */
const FENCE = `
local time = redis.call('TIME')
now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[1]) then
  refuse()
  return {now, 0}
end
`

/** Returns the time and 1. With an eighth key, `open`, other requests may join the payload until a worker reads it. */
export const ACCEPT_UNCONDITIONALLY = `${ACCEPT}${FENCE}
accept()
if KEYS[8] then redis.call('SADD', KEYS[8], ARGV[2]) end
return {now, 1}
`

/**
 * Returns the script that accepts the payload of one request on a condition. The condition calls `accept()` or `refuse()`,
 * once, and returns a result. Its own keys begin with KEYS[8], its own arguments with ARGV[11]. The script returns the
 * time, then 1 if the payload was accepted or 2 if not, then the result.
 */
export function acceptOnCondition(lua: string): string {
  return `${ACCEPT}${FENCE}
local outcome = 2
local acceptPayload = accept
accept = function()
  outcome = 1
  acceptPayload()
end
local function decide()
${lua}
end
local result = decide()
return {now, outcome, result}
`
}

/**
 * Adds requests to a payload that no worker has read. Their frames were appended to the list of the payload by the command
 * before, in the same transaction, and are removed again if they are late or a worker has read the payload.
 *
 * KEYS list, flow, shares, open, busy, arrivals; ARGV as for `ACCEPT`, for the job to join. Returns the time, then 0 if the
 * commit is late, 1 if the requests have joined and 2 if they have not.
 */
export const JOIN = `
local now
${COUNT}local function refuse() redis.call('RPOP', KEYS[1]) end
${FENCE}
if redis.call('SISMEMBER', KEYS[4], ARGV[2]) == 0 then
  refuse()
  return {now, 2}
end
count(KEYS[5], KEYS[6])
return {now, 1}
`

/** What a commit adds to its queue. */
interface Acceptance {
  readonly jobId: string
  /** The time of Redis, in Unix ms, after which the commit is refused. */
  readonly deadlineMs: number
  /** Unix time of the arrival of the first request. All requests have arrived in the same hour. */
  readonly arrivedAtMs: number
  readonly frames: number
  readonly bytes: number
  /** Cost and requests of each surface, by its member of `shares`. */
  readonly surfaces: ReadonlyMap<string, SurfaceRequests>
}

/** The requests of one surface in a commit. */
export interface SurfaceRequests {
  cost: number
  requests: number
}

/** Returns the keys in the order of the scripts. `source` is the key with the bytes. */
export function acceptKeys(keys: QueueKeys, payload: string, source: string): string[] {
  const { flow, shares, pending, busy, arrivals } = keys
  return [payload, flow, shares, pending, source, busy, arrivals]
}

/** Returns the arguments in the order of the scripts. */
export function acceptArguments(acceptance: Acceptance): (string | number)[] {
  const { deadlineMs, jobId, arrivedAtMs, frames, bytes, surfaces } = acceptance
  let sum = 0
  for (const { cost } of surfaces.values()) sum += cost
  const args = [Math.floor(deadlineMs), jobId, arrivedAtMs, frames, bytes, sum, surfaces.size]
  for (const [member, { cost, requests }] of surfaces) args.push(member, cost, requests)
  return args
}

/** The longest life of a payload that was written and not accepted. */
export const UNACCEPTED_LIFETIME_MS = 60_000

/** Returns the hour of a Unix time in ms, in hours since 1970. The requests of a commit have arrived in one hour. */
export function hourOf(unixMs: number): number {
  return Math.floor(unixMs / HOUR_MS)
}
