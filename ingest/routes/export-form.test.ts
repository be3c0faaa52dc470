import { deflateRawSync, deflateSync, gzipSync, constants as zlib, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formFault } from './export-form.ts'

const json = (body: Buffer) => formFault(true, 'identity', body)

it('accepts what every compressor writes', () => {
  const levels = {
    level: fc.constantFrom(-1, 0, 1, 6, 9),
    strategy: fc.constantFrom(zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED),
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70_000, size: 'max' }), fc.record(levels), (bytes, options) => {
      expect(formFault(true, 'gzip', gzipSync(bytes, options))).toBeUndefined()
      expect(formFault(false, 'deflate', deflateSync(bytes, options))).toBeUndefined()
      expect(formFault(false, 'deflate', deflateRawSync(bytes, options))).toBeUndefined()
      expect(formFault(true, 'zstd', zstdCompressSync(bytes))).toBeUndefined()
    }),
    { numRuns: 50 },
  )
})

it.each([
  ['gzip', Buffer.from('{"resourceSpans":[]}')],
  ['gzip', deflateSync('{}')],
  ['gzip', Buffer.alloc(0)],
  ['zstd', gzipSync('{}')],
  ['zstd', Buffer.from([0x28])],
  ['deflate', Buffer.from([0x06, 0x00])],
  ['deflate', Buffer.alloc(10)],
  ['deflate', Buffer.alloc(0)],
] as const)('refuses under %s a body that does not begin as such: %j', (encoding, body) => {
  expect(formFault(true, encoding, body)).toMatch(`content-encoding is ${encoding}`)
})

it('accepts a JSON object after blanks and a byte order mark', () => {
  for (const text of ['{', ' \r\n\t{}', '\ufeff{"a":1}', '\ufeff \n{']) expect(json(Buffer.from(text))).toBeUndefined()
  for (const text of ['', ' ', '[]', '\ufeff', '\ufeff\ufeff{', 'x{'])
    expect(json(Buffer.from(text))).toMatch(/begin with {/)
})

it('looks at no more than 64 KiB of blanks', () => {
  const blanks = Buffer.alloc(64 * 1024, ' ')
  expect(json(Buffer.concat([blanks.subarray(1), Buffer.from('{')]))).toBeUndefined()
  expect(json(Buffer.concat([blanks, Buffer.from('{')]))).toMatch(/65536 blanks/)
})
