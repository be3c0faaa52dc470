import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { BytesCache } from './bytes-cache.ts'

const viewOf = (bytes: Buffer) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

describe('a cache by bytes', () => {
  it('returns a value for its bytes alone, wherever they stand, in any order of look-ups', () => {
    const keys = fc.uniqueArray(fc.uint8Array({ maxLength: 9 }), { selector: key => Buffer.from(key).toString('hex') })
    fc.assert(
      fc.property(keys, fc.array(fc.nat()), fc.nat({ max: 5 }), (known, lookUps, before) => {
        const cache = new BytesCache<number>(MIB)
        const located = known.map(key => Buffer.concat([Buffer.alloc(before, 7), key, Buffer.alloc(3, 7)]))
        const get = (bytes: Buffer) => cache.get(viewOf(bytes), before, bytes.length - 3)
        for (const [i, bytes] of located.entries()) {
          expect(get(bytes)).toBeUndefined()
          cache.set(bytes, viewOf(bytes), before, bytes.length - 3, i)
        }
        for (const lookUp of lookUps) {
          const i = lookUp % Math.max(known.length, 1)
          const bytes = located[i]
          // The later one of two keys with one hash is kept.
          if (bytes !== undefined) expect([i, undefined]).toContain(get(bytes))
        }
        const last = located.at(-1)
        if (last !== undefined) expect(get(last)).toBe(known.length - 1)
      }),
    )
  })

  it('keeps no value whose bytes would displace all others, and none after it was cleared', () => {
    const cache = new BytesCache<string>(4_096)
    const large = Buffer.alloc(600, 1)
    cache.set(large, viewOf(large), 0, large.length, 'large')
    expect(cache.get(viewOf(large), 0, large.length)).toBeUndefined()
    const small = Buffer.alloc(500, 1)
    cache.set(small, viewOf(small), 0, small.length, 'small')
    expect(cache.get(viewOf(small), 0, small.length)).toBe('small')
    cache.clear()
    expect(cache.get(viewOf(small), 0, small.length)).toBeUndefined()
  })
})
