import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createByteCache } from './byte-cache.ts'

const valueWith = (bytes: number) => ({ bytes })

describe('a cache with a limit in bytes', () => {
  it('evicts the value that was not used for the longest time', () => {
    const cache = createByteCache(2)
    const [a, b, c] = [valueWith(1), valueWith(1), valueWith(1)]
    cache.set('a', a)
    cache.set('b', b)
    cache.get('a')
    cache.set('c', c)
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([a, undefined, c])
  })

  it('never holds more bytes than its limit, except for one larger value alone', () => {
    const operation = fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd'), bytes: fc.nat(30), get: fc.boolean() })
    fc.assert(
      fc.property(fc.array(operation), operations => {
        const cache = createByteCache(20)
        const last = new Map<string, { bytes: number }>()
        for (const { key, bytes, get } of operations) {
          if (get) expect([undefined, last.get(key)]).toContain(cache.get(key))
          else {
            const value = valueWith(bytes)
            cache.set(key, value)
            last.set(key, value)
            expect(cache.get(key)).toBe(value)
          }
          const held = ['a', 'b', 'c', 'd'].filter(name => cache.has(name))
          const heldBytes = held.reduce((sum, name) => sum + (last.get(name)?.bytes ?? 0), 0)
          expect(heldBytes <= 20 || held.length === 1).toBe(true)
        }
      }),
    )
  })

  it('takes the new size of a value that is removed and put back', () => {
    const cache = createByteCache<{ bytes: number }>(20)
    const grown = valueWith(5)
    cache.set('a', valueWith(5))
    cache.set('grown', grown)
    grown.bytes = 18
    cache.delete('grown')
    cache.set('grown', grown)
    expect([cache.has('a'), cache.has('grown'), cache.calculatedSize]).toEqual([false, true, 18])
  })
})
