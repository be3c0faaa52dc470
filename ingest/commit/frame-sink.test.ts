import { beforeEach, expect, it } from 'vitest'
import type { Problem } from '../../schemas/http/problems.ts'
import type { AnswerableRequest } from '../../shared/http/route.ts'
import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { QueueShares } from '../admission/queue-shares.ts'
import { createFrameSink, NOT_STORED } from './frame-sink.ts'
import type { WaitingRequest } from './group.ts'

const REPLY = { status: 200, body: 'stored' }
const FULL: Problem = { code: 'INGEST_BACKPRESSURE', message: 'full' }
const UNSAFE: Problem = { code: 'INGEST_INFRA_UNAVAILABLE', message: 'unsafe' }

/** The events of a test, in order. */
let events: unknown[]
let waiting: WaitingRequest[]
let unsafe: Problem | undefined
let isConnected: boolean
let freeSlots: number

beforeEach(() => {
  events = []
  waiting = []
  unsafe = undefined
  isConnected = true
  freeSlots = 1
})

const place = { share: {}, cost: 1, lane: 'express' }
const shares = {
  place: () => place,
  begin: () => events.push('begin'),
  end: (_: unknown, accepted: boolean) => events.push(accepted ? 'counts' : 'counts no more'),
  refuseLarge: () => FULL,
} as unknown as QueueShares

const enqueue = (_: unknown, __: unknown, request: WaitingRequest) => {
  if (!isConnected) throw new TransientError('redis is not connected')
  waiting.push(request)
}

const sink = createFrameSink({
  queue: 'traces',
  commits: { express: { enqueue }, bulk: { enqueue } },
  largeCommit: {
    enqueue(...request) {
      if (freeSlots-- <= 0) return false
      enqueue(...request)
      return true
    },
  },
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

function accept(bytes = 1): void {
  const frame = { receivedAtMs: 7, body: Buffer.alloc(bytes) } as unknown as PayloadFrame
  sink.accept(frame, REPLY, request)
}

const receipt = Buffer.from('rct_1')

it.each([1, LARGE_FRAME_BYTES + 1])('answers a request of %i bytes when its commit is confirmed', bytes => {
  accept(bytes)
  expect(events.splice(0)).toEqual(['begin'])
  waiting[0]?.confirmed(receipt)
  expect(events).toEqual(['counts', ['acknowledged', '7', 'rct_1'], REPLY])
})

it.each([1, LARGE_FRAME_BYTES + 1])('refuses a request of %i bytes when its commit fails, and reports why', bytes => {
  accept(bytes)
  expect(events.splice(0)).toEqual(['begin'])
  waiting[0]?.failed(new TransientError('late'))
  expect(events).toEqual(['counts no more', ['unconfirmed', '7'], 'traces: late', NOT_STORED])
})

it('refuses a request whose commit was confirmed by a server that could lose it', () => {
  accept()
  events.splice(0)
  unsafe = UNSAFE
  waiting[0]?.confirmed(receipt)
  const reported = 'traces: redis has confirmed the write and could lose it'
  expect(events).toEqual(['counts no more', ['unconfirmed', '7'], reported, NOT_STORED])
})

it('refuses at once what cannot be enqueued, and counts nothing of it', () => {
  isConnected = false
  accept()
  expect(events.splice(0)).toEqual(['traces: redis is not connected', NOT_STORED])
  isConnected = true
  freeSlots = 0
  accept(LARGE_FRAME_BYTES + 1)
  expect(events.splice(0)).toEqual([FULL])
  unsafe = UNSAFE
  accept()
  expect(events).toEqual([UNSAFE])
  expect(waiting).toEqual([])
})
