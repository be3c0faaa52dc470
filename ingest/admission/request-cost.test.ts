import { constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { costRules, requestCost, statedDecodedBytes } from './request-cost.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB
const LIMITS = { maxCost: 4 * GIB, maxPayloads: 500_000, maxBytes: GIB }
const RULES = costRules(LIMITS)
const UNKNOWN = { price: 1, ratio: 0 }
const LIMIT = 64 * MIB
const WITHOUT_SIZE = { params: { [constants.ZSTD_c_contentSizeFlag]: 0 } }
const type = 'application/x-protobuf'

const texts = fc
  .record({ seed: fc.uint8Array({ minLength: 1, maxLength: 300 }), times: fc.integer({ min: 1, max: 400 }) })
  .map(({ seed, times }) => Buffer.concat(Array.from({ length: times }, () => Buffer.from(seed))))

describe('the stated decoded size', () => {
  it('is the decoded size of truthful gzip and zstd', () => {
    fc.assert(
      fc.property(texts, text => {
        for (const [encoding, body] of [
          ['gzip', gzipSync(text)],
          ['zstd', zstdCompressSync(text, { pledgedSrcSize: text.length })],
          ['identity', text],
        ] as const) {
          expect(statedDecodedBytes(encoding, body, LIMIT)).toBe(Math.max(text.length, body.length))
        }
      }),
    )
  })

  it.each([1, 255, 256, 65_791, 65_792, 3 * MIB])('reads the size field of zstd for %i bytes', size => {
    const body = zstdCompressSync(Buffer.alloc(size), { pledgedSrcSize: size })
    expect(statedDecodedBytes('zstd', body, LIMIT)).toBe(Math.max(size, body.length))
  })

  it('is unknown for deflate and for zstd without a size', () => {
    const text = Buffer.alloc(10_000, 'abc')
    expect(statedDecodedBytes('deflate', deflateSync(text), LIMIT)).toBeUndefined()
    expect(statedDecodedBytes('zstd', zstdCompressSync(text, WITHOUT_SIZE), LIMIT)).toBeUndefined()
    expect(statedDecodedBytes('zstd', text, LIMIT)).toBeUndefined()
  })

  it('is within the encoded size and the limit for any bytes, and reading it never throws', () => {
    const encodings = fc.constantFrom('gzip', 'zstd', 'deflate', 'identity')
    const zstdStart = fc.uint8Array({ maxLength: 20 }).map(rest => Buffer.from([0x28, 0xb5, 0x2f, 0xfd, ...rest]))
    const bodies = fc.oneof(
      zstdStart,
      fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes)),
    )
    fc.assert(
      fc.property(encodings, bodies, (encoding, body) => {
        const stated = statedDecodedBytes(encoding, body, LIMIT) ?? body.length
        expect(stated).toBeGreaterThanOrEqual(body.length)
        expect(stated).toBeLessThanOrEqual(Math.max(LIMIT, body.length))
      }),
    )
  })
})

describe('the cost of a request', () => {
  const cost = (bytes: number, decoded: number | undefined, more: object = {}) =>
    requestCost(
      RULES,
      { contentType: type, body: Buffer.alloc(bytes), ...more },
      decoded,
      'price' in more ? (more as typeof UNKNOWN) : UNKNOWN,
    )

  it('keeps all three limits if the sum of costs is within the first', () => {
    const requests = fc.array(fc.record({ bytes: fc.nat({ max: 100_000 }), ratio: fc.nat({ max: 1000 }) }), {
      minLength: 1,
      maxLength: 50,
    })
    fc.assert(
      fc.property(requests, all => {
        const total = all.reduce((sum, { bytes, ratio }) => sum + cost(bytes, bytes * ratio), 0)
        const part = total / LIMITS.maxCost
        expect(all.length / LIMITS.maxPayloads).toBeLessThanOrEqual(part)
        expect(all.reduce((sum, { bytes }) => sum + bytes, 0) / LIMITS.maxBytes).toBeLessThanOrEqual(part)
      }),
    )
  })

  it('is a whole number that fits into a frame', () => {
    expect(cost(10, 0)).toBe(8590)
    expect(cost(100 * MIB, 100 * MIB)).toBe(400 * MIB)
    expect(requestCost(RULES, { contentType: type, body: Buffer.alloc(1) }, 1e15, UNKNOWN)).toBe(0xffff_ffff)
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
