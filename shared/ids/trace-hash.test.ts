import { describe, expect, it } from 'vitest'
import { traceHash } from './trace-hash.ts'

describe('the hash of a trace', () => {
  it('is MurmurHash3 with 32 bits, as its reference implementation computes it', () => {
    const hashes = ['', 'a', 'ab', 'abc', 'test', 'Hello, world!', 'The quick brown fox jumps over the lazy dog']
    expect(hashes.map(text => traceHash(Buffer.from(text)).toString(16))).toEqual([
      ...['0', '3c2569b2', '9bbfd75f', 'b3dd93fa', 'ba6bd213', 'c0363e43', '2e4ff723'],
    ])
  })

  it('is that of a part of the bytes', () => {
    expect(traceHash(Buffer.from('xxabcxx'), 2, 5)).toBe(0xb3dd93fa)
  })

  it('divides ids that are counted up evenly', () => {
    const id = Buffer.alloc(16)
    let below = 0
    for (let i = 0; i < 20_000; i++) {
      id.writeUInt32BE(i, 12)
      if (traceHash(id) < 0.1 * 2 ** 32) below++
    }
    expect(Math.abs(below - 2_000)).toBeLessThan(150)
  })
})
