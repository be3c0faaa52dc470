import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { receiptIdSchema } from '../../schemas/http/receipts.ts'
import { ADMITTED_QUEUES } from '../../schemas/queues/names.ts'
import { base32, fromBase32, writeBase32 } from './base32.ts'
import {
  COMMIT_BYTES,
  commitOf,
  indexOf,
  MAX_RECEIPTS,
  newCommit,
  openReceiptId,
  RECEIPT_BYTES,
  ReceiptIds,
  receiptSeal,
} from './receipt.ts'

const SECRET = randomBytes(32)
const index = fc.nat(MAX_RECEIPTS - 1)
const surfaceId = fc.oneof(
  fc.stringMatching(/^srf_[0-9a-z]{1,20}$/),
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 60 }),
)
const request = fc.record({
  kind: fc.constantFrom(...ADMITTED_QUEUES),
  arrivedAtMs: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
  workspaceId: fc.stringMatching(/^ws_[0-9a-z]{1,20}$/),
  surfaceId,
  index,
})
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never

const surfaceOf = ({ workspaceId, surfaceId }: Request) => ({ workspaceId, surfaceId })

function idOf(made: Request, secret = SECRET) {
  const commit = newCommit(made.kind, made.arrivedAtMs)
  return { commit, id: new ReceiptIds(commit).write(made.index, receiptSeal(secret, surfaceOf(made))).toString() }
}

describe('the id of a receipt', () => {
  it('can be opened in its workspace, and is a header value', () => {
    fc.assert(
      fc.property(request, made => {
        const { commit, id } = idOf(made)
        const { workspaceId, ...told } = made
        expect(id).toMatch(/^[\x21-\x7e]+$/)
        expect(receiptIdSchema.safeParse(id).success).toBe(true)
        expect(openReceiptId(SECRET, workspaceId, id)).toEqual({ ...told, commit })
      }),
    )
  })

  it('cannot be opened with a changed bit, another workspace or another secret', () => {
    fc.assert(
      fc.property(request, fc.nat(), fc.integer({ min: 0, max: 6 }), (made, at, bit) => {
        const { id } = idOf(made)
        const flipped = Buffer.from(id)
        const index = at % flipped.length
        flipped[index] = (flipped[index] as number) ^ (1 << bit)
        expect(openReceiptId(SECRET, made.workspaceId, flipped.toString('latin1'))).toBeUndefined()
        expect(openReceiptId(SECRET, `${made.workspaceId}0`, id)).toBeUndefined()
        expect(openReceiptId(randomBytes(32), made.workspaceId, id)).toBeUndefined()
      }),
    )
  })

  it('cannot be opened with the index, the group commit or the surface of another request', () => {
    fc.assert(
      fc.property(request, request, (made, other) => {
        fc.pre(made.index !== other.index && made.surfaceId !== other.surfaceId)
        const { id } = idOf(made)
        const { id: otherId } = idOf(other)
        const mixed = [
          `${id.slice(0, 24)}${otherId.slice(24, 28)}${id.slice(28)}`,
          `${otherId.slice(0, 24)}${id.slice(24)}`,
          `${id.slice(0, 48)}${otherId.slice(48)}`,
        ]
        for (const text of mixed) {
          expect(receiptIdSchema.safeParse(text).success).toBe(true)
          expect(openReceiptId(SECRET, made.workspaceId, text)).toBeUndefined()
        }
      }),
    )
  })

  it('is the same after other ids were written with the same seal', () => {
    const ids = fc.array(fc.tuple(fc.nat(2), index), { minLength: 1 })
    fc.assert(
      fc.property(request, ids, (made, written) => {
        const commits = [1, 2, 3].map(at => newCommit(made.kind, at))
        const reused = commits.map(commit => new ReceiptIds(commit))
        const seal = receiptSeal(SECRET, surfaceOf(made))
        for (const [of, index] of written) {
          const fresh = new ReceiptIds(commits[of] as Buffer).write(index, receiptSeal(SECRET, surfaceOf(made)))
          expect(reused[of]?.write(index, seal).toString()).toBe(fresh.toString())
        }
      }),
    )
  })

  it('is not accepted for any other text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^rct_[a-z2-7]{44}_[\w%]{1,40}$/)), text => {
        expect(openReceiptId(SECRET, 'ws_1', text)).toBeUndefined()
      }),
    )
  })
})

it('a receipt consists of its group commit and its index in it', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: COMMIT_BYTES, maxLength: COMMIT_BYTES }),
      fc.nat(2 ** 32 - 1),
      (commit, at) => {
        const receipt = Buffer.alloc(RECEIPT_BYTES)
        receipt.set(commit)
        receipt.writeUInt32BE(at, COMMIT_BYTES)
        expect(Buffer.from(commitOf(receipt.toString('latin1')), 'latin1')).toEqual(Buffer.from(commit))
        expect(indexOf(receipt.toString('latin1'))).toBe(at)
      },
    ),
  )
})

it('group commits of the same moment have different ids', () => {
  const names = new Set(Array.from({ length: 10_000 }, () => newCommit('traces', 1).toString('hex')))
  expect(names.size).toBe(10_000)
})

it('base32 is encoded and decoded as in the RFC', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), bytes => {
      const padded = Buffer.concat([bytes, Buffer.alloc(1)])
      expect(fromBase32(base32(padded, Math.ceil((bytes.length * 8) / 5)))).toEqual(Buffer.from(bytes))
    }),
  )
  // RFC 4648, section 10.
  expect(base32(Buffer.from('fooba'), 8)).toBe('mzxw6ytb')
  expect(fromBase32('mzxw6ytb1')).toBeUndefined()
  const written = Buffer.from('------')
  writeBase32(written, 1, Buffer.from('fooba').readUIntBE(0, 3) >>> 4)
  expect(written.toString()).toBe('-mzxw-')
})
