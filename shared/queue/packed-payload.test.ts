import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isPacked, packPayload, wholePayload } from './packed-payload.ts'
import { decodePayload, encodePayload, PAYLOAD_HEADER_BYTES, type PayloadFrame } from './payload-frame.ts'

const frame = (body: Buffer): PayloadFrame => ({
  workspaceId: 'ws_a',
  surfaceId: 'srf_a',
  receivedAtMs: 1,
  contentType: 'application/x-protobuf',
  contentEncoding: 'identity',
  attributes: '',
  body,
})

/** Bodies that can be packed, and some that cannot. */
const bodies = fc.oneof(
  fc
    .tuple(fc.string({ minLength: 1, maxLength: 20 }), fc.nat({ max: 5_000 }))
    .map(([text, n]) => Buffer.from(text.repeat(n))),
  fc.nat({ max: 20_000 }).map(length => randomBytes(length)),
)

it('returns the frames of all parts in order, the first one packed or not', async () => {
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(bodies, { minLength: 1, maxLength: 6 }), async (packs, commits) => {
      const parts = await Promise.all(
        commits.map(async (body, i) => {
          const payload = encodePayload([frame(body)])
          if (i > 0) return payload.subarray(PAYLOAD_HEADER_BYTES)
          return packs ? packPayload(payload) : payload
        }),
      )
      const payload = await wholePayload(parts)
      expect(decodePayload(payload).map(({ body }) => body)).toEqual(commits)
    }),
    { numRuns: 100 },
  )
})

it('returns the only part itself if it is not packed', async () => {
  const payload = encodePayload([frame(Buffer.from('a'))])
  expect(await wholePayload([payload])).toBe(payload)
})

it('copies an only part that is packed only if the memory does not take it over', async () => {
  const payload = encodePayload([frame(Buffer.alloc(100_000, 'ab'))])
  const packed = await packPayload(payload)
  const taken: Buffer[] = []
  const take = (length: number) => {
    taken.push(Buffer.alloc(length))
    return taken[0] as Buffer
  }
  expect(await wholePayload([packed], { take, adopt: () => true })).toEqual(payload)
  expect(taken).toEqual([])
  expect(await wholePayload([packed], { take, adopt: () => false })).toBe(taken[0])
  expect(taken).toEqual([payload])
})

it('leaves a payload as it is if packing saves less than an eighth', async () => {
  const payload = encodePayload([frame(randomBytes(100_000))])
  expect(await packPayload(payload)).toBe(payload)
})

it('refuses a packed payload that is cut', async () => {
  const packed = await packPayload(encodePayload([frame(Buffer.alloc(100_000, 'ab'))]))
  expect(isPacked(packed)).toBe(true)
  for (const length of [5, 20, packed.length - 1]) {
    await expect(wholePayload([packed.subarray(0, length)])).rejects.toThrow()
  }
})
