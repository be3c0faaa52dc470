import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  appendFrame,
  beginPayload,
  CONTENT_ENCODINGS,
  CONTENT_TYPES,
  decodePayload,
  encodePayload,
  frameBytes,
  type PayloadFrame,
} from './payload-frame.ts'

/** Receipts begin with a time, so they are never all zeros. */
const receipts = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .filter(bytes => bytes.some(byte => byte !== 0))
  .map(bytes => Buffer.from(bytes).toString('latin1'))

const frames: fc.Arbitrary<PayloadFrame[]> = fc.array(
  fc.record({
    workspaceId: fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
    surfaceId: fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
    receivedAtMs: fc.nat({ max: 2 ** 43 }),
    contentType: fc.constantFrom(...CONTENT_TYPES),
    contentEncoding: fc.constantFrom(...CONTENT_ENCODINGS),
    attributes: fc.oneof(fc.constant(''), fc.json()),
    receipt: fc.option(receipts, { nil: undefined }),
    cost: fc.nat({ max: 0xffff_ffff }),
    body: fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
  }),
  { maxLength: 20 },
)

it('decodes the frames that were encoded', () => {
  fc.assert(
    fc.property(frames, sent => {
      const payload = encodePayload(sent)
      expect(payload.length).toBe(1 + sent.reduce((sum, frame) => sum + frameBytes(frame), 0))
      expect(decodePayload(payload)).toEqual(sent)
    }),
  )
})

it('appends frame by frame to a used buffer and makes the same payload', () => {
  fc.assert(
    fc.property(frames, sent => {
      const payload = encodePayload(sent)
      const buffer = Buffer.alloc(payload.length + 100, 0xaa)
      let end = beginPayload(buffer)
      for (const frame of sent) end = appendFrame(buffer, end, frame)
      expect(buffer.subarray(0, end).equals(payload)).toBe(true)
    }),
  )
})

it('refuses a truncated payload instead of reading past its end', () => {
  fc.assert(
    fc.property(frames, fc.nat(), (sent, cut) => {
      const payload = encodePayload(sent)
      const length = cut % payload.length
      let whole = 1
      const ends = new Set([whole])
      for (const frame of sent) {
        whole += frameBytes(frame)
        ends.add(whole)
      }
      fc.pre(!ends.has(length))
      expect(() => decodePayload(payload.subarray(0, length))).toThrow(RangeError)
    }),
  )
})

it('refuses a later version', () => {
  expect(() => decodePayload(Buffer.from([2]))).toThrow(RangeError)
})
