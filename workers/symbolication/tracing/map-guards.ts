import type { Redis } from 'ioredis'
import { MIB, MINUTE_MS } from '../../../schemas/units.ts'
import { queueScript } from '../../../shared/queue/queue-script.ts'

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

const ENTER = queueScript('enter-map')

/** Options of the guards. */
interface MapGuardsOptions {
  /** A worker that has not left a map so long after it entered has ended. */
  readonly deadlineMs: number
  /** Heap limit of the process that parses maps. A map that is too large for it may be usable with another limit. */
  readonly heapBytes: number
}

/** Creates the guards of maps, which workers with the same heap limit share. */
export function createMapGuards(
  redis: Pick<Redis, 'evalsha' | 'eval' | 'set' | 'del'>,
  { deadlineMs, heapBytes }: MapGuardsOptions,
): MapGuards {
  // The key of a map contains its workspace.
  const guardKey = (mapKey: string) => `penstock:{symbolication.0}:map:${Math.ceil(heapBytes / MIB)}:${mapKey}`
  return {
    async enter(mapKey) {
      const args = [deadlineMs, MAX_TRIES, UNUSABLE_FOR_MS]
      return (await ENTER.run(redis, [guardKey(mapKey)], args)) as 'entered' | 'busy' | 'unusable'
    },
    async leave(mapKey) {
      await redis.del(guardKey(mapKey))
    },
    async condemn(mapKey) {
      await redis.set(guardKey(mapKey), 'unusable', 'PX', UNUSABLE_FOR_MS)
    },
  }
}
