import type { Redis } from 'ioredis'

const HELD_AT_ONCE = 100_000
const SCAN_COUNT = 5_000

/**
 * The members of a set of SHA-256 (32 bytes each), in hex, in their order. A set that is larger than what is held at once
 * is scanned several times, each time for its own range of first bytes: hashes are spread evenly over them.
 */
export async function* walkSortedMaps(redis: Redis, key: string, heldAtOnce = HELD_AT_ONCE): AsyncGenerator<string> {
  const ranges = Math.ceil((await redis.scard(key)) / heldAtOnce)
  for (let range = 0; range < ranges; range++) {
    const found = new Set<string>()
    let cursor = '0'
    do {
      const [next, members] = await redis.sscanBuffer(key, cursor, 'COUNT', SCAN_COUNT)
      cursor = next.toString()
      for (const member of members) {
        if (Math.floor((member.readUInt32BE() / 2 ** 32) * ranges) === range) found.add(member.toString('hex'))
      }
    } while (cursor !== '0')
    yield* [...found].sort()
  }
}
