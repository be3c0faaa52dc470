import { beforeEach, describe, expect, it } from 'vitest'
import type { Problem } from '../../schemas/http/problems.ts'
import { FairShares } from '../../shared/concurrency/fair-shares.ts'
import type { AnswerableRequest } from '../../shared/http/route.ts'
import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { PlacedRequest, QueueShares } from '../admission/queue-shares.ts'
import type { WaitingRequest } from './group.ts'
import { ACCEPTED } from './payload-writer.ts'
import { AdmittedRequest, createSink, NOT_STORED } from './sink.ts'

const REPLY = { status: 200, body: 'stored' }
const FULL: Problem = { code: 'INGEST_BACKPRESSURE', message: 'full' }
const UNSAFE: Problem = { code: 'INGEST_INFRA_UNAVAILABLE', message: 'unsafe' }

/** The events of a test, in order. */
let events: unknown[]
let waiting: WaitingRequest[]
let unsafe: Problem | undefined
let isConnected: boolean
let refused: Problem | undefined

beforeEach(() => {
  events = []
  waiting = []
  unsafe = undefined
  isConnected = true
  refused = undefined
})

const shares = {
  shareOf: () => ({ member: 'ws/srf' }),
  refuse: () => refused,
  place: (placed: PlacedRequest) => {
    placed.cost = 1
    return undefined
  },
  begin: () => events.push('begin'),
  end: (_: unknown, accepted: boolean) => events.push(accepted ? 'counts' : 'counts no more'),
  refuseLarge: () => FULL,
} as unknown as QueueShares

const enqueue = (_: PayloadFrame, waits: WaitingRequest) => {
  if (!isConnected) throw new TransientError('redis is not connected')
  waiting.push(waits)
}
const commit = { enqueue, enqueueAlone: enqueue }

/** Two slots, of which one surface gets one. */
const slots = new FairShares(2)

const sink = createSink({
  queue: 'traces',
  commits: { express: commit, bulk: commit },
  large: { commit, slots },
  shares,
  failures: { report: (queue, error) => events.push(`${queue}: ${(error as Error).message}`) },
  durability: { refuse: () => unsafe },
})

const request: AnswerableRequest = {
  requestId: 'r',
  committed: (...commit) => events.push(commit.map(String)),
  answer: reply => events.push(reply),
  refuse: problem => events.push(problem),
}

const SURFACE = { workspaceId: 'ws', surfaceId: 'srf' }

function admit(contentLength = 1) {
  return sink.admit(SURFACE, contentLength, 10)
}

function admitted(): AdmittedRequest {
  const decision = admit()
  if ('code' in decision) throw new Error(decision.message)
  return decision
}

const frameOf = (bytes: number) => ({ receivedAtMs: 7, body: Buffer.alloc(bytes) }) as unknown as PayloadFrame

function accept(bytes = 1): void {
  admitted().accept(frameOf(bytes), REPLY, request)
}

const receipt = Buffer.from('rct_1')

it.each([1, LARGE_FRAME_BYTES + 1])('answers a request of %i bytes when its commit is confirmed', bytes => {
  accept(bytes)
  expect(events.splice(0)).toEqual(['begin'])
  waiting[0]?.confirmed(receipt, ACCEPTED)
  expect(events).toEqual(['counts', ['acknowledged', '7', 'rct_1'], REPLY])
})

it.each([1, LARGE_FRAME_BYTES + 1])('refuses a request of %i bytes when its commit fails, and reports why', bytes => {
  accept(bytes)
  expect(events.splice(0)).toEqual(['begin'])
  waiting[0]?.failed(new TransientError('late'))
  expect(events).toEqual(['counts no more', ['unconfirmed', '7'], 'traces: late', NOT_STORED])
})

it('refuses at once what cannot be enqueued, and counts nothing of it', () => {
  isConnected = false
  accept()
  accept(LARGE_FRAME_BYTES + 1)
  const failure = ['traces: redis is not connected', NOT_STORED]
  expect(events.splice(0)).toEqual([...failure, ...failure])
  expect(slots.used).toBe(0)
  isConnected = true
  accept(LARGE_FRAME_BYTES + 1)
  expect(events.splice(0)).toEqual(['begin'])
  accept(LARGE_FRAME_BYTES + 1)
  expect(events.splice(0)).toEqual([FULL])
  waiting[0]?.failed(new TransientError('late'))
  expect(slots.used).toBe(0)
})

it('decides on the head, unless its body is refused for its size', () => {
  expect(admit()).toBeInstanceOf(AdmittedRequest)
  refused = FULL
  expect(admit()).toBe(FULL)
  unsafe = UNSAFE
  expect(admit()).toBe(UNSAFE)
  expect(admit(11)).toBeInstanceOf(AdmittedRequest)
})

describe('a request with a condition', () => {
  const condition = { script: queueScript('uploads/claim-part'), keys: [], args: [] }

  it.each([
    [true, [['acknowledged', '7', 'rct_1']]],
    [false, []],
  ])('is stored with the result of the condition, which is counted if it accepts: %s', async (accepted, counted) => {
    const stored = admitted().store(frameOf(1), request, condition)
    waiting[0]?.confirmed(receipt, { accepted, result: 'result' })
    expect(await stored).toEqual({ ok: true, result: 'result' })
    expect(events).toEqual(['begin', accepted ? 'counts' : 'counts no more', ...counted])
  })

  it('is not stored when its commit fails', async () => {
    const stored = admitted().store(frameOf(1), request, condition)
    waiting[0]?.failed(new TransientError('late'))
    expect(await stored).toEqual({ ok: false, problem: NOT_STORED })
    expect(events).toEqual(['begin', 'counts no more', ['unconfirmed', '7'], 'traces: late'])
  })
})
