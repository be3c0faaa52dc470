import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LruCache } from './lru-cache.ts'

describe('a cache of what was used last', () => {
  it('forgets what was not used for the longest time first', () => {
    const cache = new LruCache<number>({ limit: 2 })
    cache.set('a', 1)
    cache.set('b', 2)
    cache.get('a')
    cache.set('c', 3)
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3])
  })

  it('forgets what is too old, by the clock that it is given', () => {
    let nowMs = 0
    const cache = new LruCache<number>({ limit: 10, maxAgeMs: 100, now: () => nowMs })
    cache.set('a', 1)
    nowMs = 99
    expect([cache.has('a'), cache.get('a')]).toEqual([true, 1])
    nowMs = 100
    expect([cache.has('a'), cache.get('a'), cache.size]).toEqual([false, undefined, 0])
  })

  it('never weighs more than its limit, but for one value alone', () => {
    const operation = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), weight: fc.nat(15), get: fc.boolean() })
    fc.assert(
      fc.property(fc.array(operation), operations => {
        const cache = new LruCache<number>({ limit: 20, weightOf: weight => weight })
        const last = new Map<string, number>()
        for (const { key, weight, get } of operations) {
          if (get) expect([undefined, last.get(key)]).toContain(cache.get(key))
          else {
            cache.set(key, weight)
            last.set(key, weight)
            expect(cache.get(key)).toBe(weight)
          }
          const held = ['a', 'b', 'c', 'd'].filter(name => cache.has(name))
          expect(cache.weight).toBe(held.reduce((sum, name) => sum + (last.get(name) ?? 0), 0))
          expect(cache.weight <= 20 || cache.size === 1).toBe(true)
        }
      }),
    )
  })
})
