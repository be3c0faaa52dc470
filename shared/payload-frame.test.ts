import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  CONTENT_ENCODINGS,
  CONTENT_TYPES,
  decodePayload,
  encodePayload,
  frameBytes,
  type PayloadFrame,
} from './payload-frame.ts'

const frames: fc.Arbitrary<PayloadFrame[]> = fc.array(
  fc.record({
    workspaceId: fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
    surfaceId: fc.string({ unit: 'grapheme-ascii', maxLength: 60 }),
    receivedAtMs: fc.nat({ max: 2 ** 43 }),
    contentType: fc.constantFrom(...CONTENT_TYPES),
    contentEncoding: fc.constantFrom(...CONTENT_ENCODINGS),
    attributes: fc.oneof(fc.constant(''), fc.json()),
    body: fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
  }),
  { maxLength: 20 },
)

it('gives back the frames it was given', () => {
  fc.assert(
    fc.property(frames, sent => {
      const payload = encodePayload(sent)
      expect(payload.length).toBe(1 + sent.reduce((sum, frame) => sum + frameBytes(frame), 0))
      expect(decodePayload(payload)).toEqual(sent)
    }),
  )
})

it('builds in a buffer that is large enough, whatever was there, and elsewhere when it is not', () => {
  fc.assert(
    fc.property(frames, fc.nat({ max: 4_000 }), (sent, size) => {
      const buffer = Buffer.alloc(size, 0xaa)
      const payload = encodePayload(sent, buffer)
      expect(payload.equals(encodePayload(sent))).toBe(true)
      expect(payload.buffer === buffer.buffer).toBe(payload.length <= size)
    }),
  )
})

it('refuses a payload that is cut short, rather than reading past it', () => {
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
