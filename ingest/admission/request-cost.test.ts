import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GIB, MIB } from '../../schemas/units.ts'
import { MIN_REQUEST_COST, requestCost } from './request-cost.ts'

const MAX_COST = 4 * GIB
const UNKNOWN = { price: 1, ratio: 0 }
const type = 'application/x-protobuf'

describe('the cost of a request', () => {
  const cost = (bytes: number, decoded: number | undefined, more: object = {}) =>
    requestCost(
      MAX_COST,
      { contentType: type, body: Buffer.alloc(bytes), ...more },
      decoded,
      'price' in more ? (more as typeof UNKNOWN) : UNKNOWN,
    )

  it('bounds the number and the bytes of requests by their sum', () => {
    const requests = fc.array(fc.record({ bytes: fc.nat({ max: 100_000 }), ratio: fc.nat({ max: 1000 }) }), {
      minLength: 1,
      maxLength: 50,
    })
    fc.assert(
      fc.property(requests, all => {
        const total = all.reduce((sum, { bytes, ratio }) => sum + cost(bytes, bytes * ratio), 0)
        expect(all.length * MIN_REQUEST_COST).toBeLessThanOrEqual(total)
        expect(all.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(total)
      }),
    )
  })

  it('is a whole number that fits into a frame', () => {
    expect(cost(10, 0)).toBe(8192)
    expect(cost(100 * MIB, 100 * MIB)).toBe(100 * MIB)
    expect(requestCost(1e12, { contentType: type, body: Buffer.alloc(1) }, 1e15, UNKNOWN)).toBe(0xffff_ffff)
  })

  it('is at least its size, however little work the requests of its surface have been', () => {
    expect(cost(MIB, MIB, { price: 0.25, ratio: 0 })).toBe(MIB)
  })

  it('has a sixteenth of the queue as work at most, whatever the body states and its surface has cost', () => {
    expect(cost(100_000, 64 * MIB, { price: 64, ratio: 0 })).toBe(256 * MIB)
  })

  it('follows the decoded size, thrice for JSON, times the price of the surface', () => {
    expect(cost(100_000, 4 * MIB)).toBe(4 * MIB)
    expect(cost(100_000, 4 * MIB, { contentType: 'application/json' })).toBe(12 * MIB)
    expect(cost(100_000, 4 * MIB, { price: 2.5, ratio: 0 })).toBe(10 * MIB)
  })

  it('assumes the recent ratio of the surface for a body that states no size, and at least eight', () => {
    expect(cost(MIB, undefined)).toBe(8 * MIB)
    expect(cost(MIB, undefined, { price: 1, ratio: 3 })).toBe(8 * MIB)
    expect(cost(MIB, undefined, { price: 1, ratio: 20 })).toBe(20 * MIB)
  })
})
