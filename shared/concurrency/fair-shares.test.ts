import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FairShares } from './fair-shares.ts'

/** Takes single units for one owner until its share is full, and returns how many it got. */
function fill(shares: FairShares, owner: string): number {
  let taken = 0
  while (shares.take(owner, 1)) taken++
  return taken
}

describe('FairShares', () => {
  it('gives one owner half of the limit, and the next one half of the rest', () => {
    const shares = new FairShares(100)
    expect(fill(shares, 'a')).toBe(50)
    expect(fill(shares, 'b')).toBe(25)
  })

  it('gives one owner of weight 2 two thirds of the limit', () => {
    expect(fill(new FairShares(96, 2), 'a')).toBe(64)
  })

  it('gives the last unit to an owner that holds nothing', () => {
    const shares = new FairShares(2)
    expect([shares.take('a', 1), shares.take('a', 1), shares.take('b', 1), shares.take('c', 1)]).toEqual([
      true,
      false,
      true,
      false,
    ])
  })

  it('always has room for an owner that holds nothing, however many others have filled their shares', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), owners => {
        const shares = new FairShares(1_000)
        for (let round = 0; round < 3; round++) for (let i = 0; i < owners; i++) fill(shares, `owner ${i}`)
        expect(shares.take('newcomer', 1)).toBe(true)
      }),
    )
  })

  it('never exceeds the limit, and forgets owners that have given everything back', () => {
    const steps = fc.array(
      fc.record({ owner: fc.constantFrom('a', 'b', 'c'), amount: fc.integer({ min: 1, max: 60 }) }),
    )
    fc.assert(
      fc.property(steps, taken => {
        const shares = new FairShares(100)
        const granted = taken.filter(({ owner, amount }) => shares.take(owner, amount))
        expect(shares.used).toBe(granted.reduce((sum, { amount }) => sum + amount, 0))
        expect(shares.used).toBeLessThanOrEqual(100)
        for (const { owner, amount } of granted) shares.give(owner, amount)
        expect([shares.used, shares.heldBy('a'), shares.heldBy('b'), shares.heldBy('c')]).toEqual([0, 0, 0, 0])
      }),
    )
  })
})
