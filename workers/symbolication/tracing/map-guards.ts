import type { Redis } from 'ioredis'
import { MINUTE_MS } from '../../../schemas/units.ts'

/** A map counts as unusable for this long after it was found to be. */
export const UNUSABLE_FOR_MS = 10 * MINUTE_MS
/** Times that a worker may end while it parses a map, for example because it is deployed. */
const MAX_TRIES = 2

/** Remembers in Redis which maps are being parsed, so that a map that ends its workers is not tried by all of them. */
export interface MapGuards {
  /**
   * Marks a map before it is parsed. `busy`: another worker parses it now. `unusable`: it was found unusable in the last
   * ten minutes, or two workers ended while they parsed it.
   */
  enter(mapKey: string): Promise<'entered' | 'busy' | 'unusable'>
  /** Removes the mark of a map that could be parsed, or whose parsing was given up for another reason than the map. */
  leave(mapKey: string): Promise<void>
  /** Marks a map as unusable for ten minutes. */
  condemn(mapKey: string): Promise<void>
}

/** KEYS guard; ARGV deadline of parsing in ms, tries, lifetime in ms. The guard is `unusable` or `tries:time of the last`. */
const ENTER = `
local guard = redis.call('GET', KEYS[1])
if guard == 'unusable' then return 'unusable' end
local now = redis.call('TIME')
local nowMs = now[1] * 1000 + math.floor(now[2] / 1000)
local tries = 0
if guard then
  local count, last = string.match(guard, '^(%d+):(%d+)$')
  if nowMs - tonumber(last) < tonumber(ARGV[1]) then return 'busy' end
  tries = tonumber(count)
end
if tries >= tonumber(ARGV[2]) then return 'unusable' end
redis.call('SET', KEYS[1], string.format('%d:%.0f', tries + 1, nowMs), 'PX', ARGV[3])
return 'entered'
`

/** Creates the guards of maps. A worker that has not left a map `deadlineMs` after it entered has ended. */
export function createMapGuards(redis: Pick<Redis, 'eval' | 'set' | 'del'>, deadlineMs: number): MapGuards {
  return {
    async enter(mapKey) {
      const args = [deadlineMs, MAX_TRIES, UNUSABLE_FOR_MS]
      return (await redis.eval(ENTER, 1, guardKey(mapKey), ...args)) as 'entered' | 'busy' | 'unusable'
    },
    async leave(mapKey) {
      await redis.del(guardKey(mapKey))
    },
    async condemn(mapKey) {
      await redis.set(guardKey(mapKey), 'unusable', 'PX', UNUSABLE_FOR_MS)
    },
  }
}

/** The key of a map contains its workspace. */
const guardKey = (mapKey: string) => `penstock:{symbolication.0}:map:${mapKey}`
