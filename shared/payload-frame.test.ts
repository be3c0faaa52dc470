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

it('appends frame by frame in a buffer, whatever was there, to the same payload', () => {
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
