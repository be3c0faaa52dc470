import { expect, it } from 'vitest'
import { commitOf, indexOf, openReceiptId } from '../../shared/ids/receipt.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { shareMember } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { Group } from './group.ts'
import { ACCEPTED } from './payload-writer.ts'
import { createReceiptIssuer } from './receipt-issuer.ts'

const SECRET = Buffer.alloc(32, 1)
const issuer = createReceiptIssuer(() => SECRET)
const BODIES = ['a 1', 'b 1', 'a 2', 'b 2', 'a 3']

function frameOf(body: string): PayloadFrame {
  const surface = { workspaceId: 'ws_1', surfaceId: `srf_${body[0]}` }
  const type = { contentType: 'application/json', contentEncoding: 'identity' } as const
  return { ...surface, ...type, receivedAtMs: 1_000, attributes: '', body: Buffer.from(body) }
}

/** Returns a group with a request for each body, whose answers are added to `answers`. */
function groupOf(bodies: readonly string[], answers: string[]): Group {
  const group = new Group(Buffer.alloc(10_000), issuer.open('traces', 1_000), 1_000, 0)
  for (const body of bodies) {
    const frame = frameOf(body)
    group.append(frame, {
      share: { member: shareMember(frame), backlog: 0 },
      cost: 2,
      confirmed: receiptId => answers.push(String(receiptId)),
      failed: error => answers.push(`${body}: ${error.message}`),
    })
  }
  return group
}

it('answers each request with the receipt of its own frame, also when groups of the same surfaces are answered in turn', async () => {
  const groups = [BODIES, BODIES, BODIES].map(bodies => {
    const answers: string[] = []
    return { answers, group: groupOf(bodies, answers) }
  })
  for (const { group } of groups) group.answer(ACCEPTED)
  for (const { answers, group } of groups) {
    const frames = decodePayload(await group.close())
    const receipts = answers.map(id => {
      const { commit, index, surfaceId } = openReceiptId(SECRET, 'ws_1', id) ?? {}
      return [surfaceId, commit?.toString('latin1'), index]
    })
    const expected = frames.map(({ surfaceId, receipt = '' }) => [surfaceId, commitOf(receipt), indexOf(receipt)])
    expect(frames.map(({ body }) => String(body))).toEqual(BODIES)
    expect(receipts).toEqual(expected)
  }
  expect(new Set(groups.flatMap(({ answers }) => answers)).size).toBe(3 * BODIES.length)
})

it('fails all requests together', () => {
  const answers: string[] = []
  groupOf(BODIES, answers).answer(new TransientError('late'))
  expect(answers).toEqual(BODIES.map(body => `${body}: late`))
})

it('sums cost and requests of each surface', () => {
  const { surfaces, cost, frames } = groupOf(BODIES, [])
  expect([...surfaces]).toEqual([
    ['ws_1/srf_a', { cost: 6, requests: 3 }],
    ['ws_1/srf_b', { cost: 4, requests: 2 }],
  ])
  expect([cost, frames]).toEqual([10, 5])
})
