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

  it('gives an owner that is alone in its group the same share as without a group', () => {
    const shares = new FairShares(100)
    expect([fill(shares, 'w/a'), fill(shares, 'x/a')]).toEqual([50, 25])
  })

  it('gives all owners of a group at most two thirds, however many they are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 3_000 }), owners => {
        const shares = new FairShares(3_000)
        for (let round = 0; round < 3; round++) for (let i = 0; i < owners; i++) fill(shares, `w/${i}`)
        expect(shares.used).toBeGreaterThan(1_600)
        expect(shares.used).toBeLessThanOrEqual(2_000)
        expect(fill(shares, 'x/a')).toBeGreaterThan(490)
      }),
      { numRuns: 20 },
    )
  })

  it('has room for another owner of the group while one owner has its whole share', () => {
    const shares = new FairShares(100)
    fill(shares, 'w/a')
    expect(fill(shares, 'w/b')).toBeGreaterThan(10)
    expect(shares.take('w/c', 1)).toBe(true)
  })

  it('does not count what an owner holds that has the name of a group', () => {
    const shares = new FairShares(100)
    fill(shares, 'w/a')
    expect(fill(shares, 'w')).toBe(25)
  })

  it('gives everything back to a group, although it forgets owners', () => {
    const shares = new FairShares(10_000)
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 3_000; i++) expect(shares.take(`w/${i}`, 1)).toBe(true)
      for (let i = 0; i < 3_000; i++) shares.give(`w/${i}`, 1)
    }
    expect(shares.used).toBe(0)
    expect(fill(shares, 'w/a')).toBe(5_000)
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
      fc.record({ owner: fc.constantFrom('a', 'b', 'w/a', 'w/b'), amount: fc.integer({ min: 1, max: 60 }) }),
    )
    fc.assert(
      fc.property(steps, taken => {
        const shares = new FairShares(100)
        const granted = taken.filter(({ owner, amount }) => shares.take(owner, amount))
        expect(shares.used).toBe(granted.reduce((sum, { amount }) => sum + amount, 0))
        expect(shares.used).toBeLessThanOrEqual(100)
        for (const { owner, amount } of granted) shares.give(owner, amount)
        expect([shares.used, shares.heldBy('a'), shares.heldBy('w/a'), shares.heldBy('w/b')]).toEqual([0, 0, 0, 0])
      }),
    )
  })
})
