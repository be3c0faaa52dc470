import { constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MIB } from '../../schemas/units.ts'
import { estimatedWork, measuredWork, statedDecodedBytes } from './request-work.ts'

const LIMIT = 64 * MIB
const WITHOUT_SIZE = { params: { [constants.ZSTD_c_contentSizeFlag]: 0 } }

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

describe('the work of a request', () => {
  it('is estimated from the stated size, or else from earlier bodies, but at least eight times the encoded size', () => {
    expect(estimatedWork('application/x-protobuf', 10, 1_000)).toBe(1_000)
    expect(estimatedWork('application/json', 10, 1_000)).toBe(3_000)
    expect(estimatedWork('application/x-protobuf', 10, undefined)).toBe(80)
    expect(estimatedWork('application/x-protobuf', 10, undefined, 20)).toBe(200)
  })

  it('is measured by size or by time, whichever is more', () => {
    expect(measuredWork('application/x-protobuf', 1_000_000, 1)).toBe(1_000_000)
    expect(measuredWork('application/x-protobuf', 1_000, 10)).toBe(1_500_000)
  })
})
