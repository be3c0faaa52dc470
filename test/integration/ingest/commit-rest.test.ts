import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { BufferPool } from '../../../shared/memory/buffer-pool.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { commitBody, openExpressCommits } from '../../support/express-commits.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const keys = queueKeys('traces')
const LIMITS = { maxCommitBytes: MIB, maxCommitFrames: 512, timeoutMs: 5_000 }
let producer: Redis
let commitsOfFrames: number[]

beforeEach(async () => {
  producer = connectProducer(`${sharedServices().redisUrl}/6`, 5_000, pino({ level: 'silent' }))
  await until('it is connected', () => producer.flushdb().then(Boolean, () => false))
  commitsOfFrames = []
})

afterEach(() => producer.disconnect())

/**
 * Opens commits for which this many requests waited at once recently. Their clock stands still then, so that a rest is due
 * whenever two requests came at once.
 */
async function openCommits(clients: number) {
  let now = 0
  const options = { ...LIMITS, onCommit: (frames: number) => commitsOfFrames.push(frames) }
  const commits = openExpressCommits(producer, options, 'traces', new BufferPool(MIB), () => now)
  await until('the queue is open', async () => {
    await commitBody(commits, 'first').catch(() => {})
    return commitsOfFrames.length === 1
  })
  await Promise.all(Array.from({ length: clients }, (_, i) => commitBody(commits, `before ${i}`)))
  commitsOfFrames.length = 0
  now = 150
  return commits
}

/** Commits a request alone, one while that is in flight, and one when the first is answered. Resolves when all are stored. */
async function commitThree(clients: number): Promise<void> {
  const commits = await openCommits(clients)
  const first = commitBody(commits, 'a')
  await new Promise(resolve => setImmediate(resolve))
  const second = commitBody(commits, 'b')
  await first
  await Promise.all([second, commitBody(commits, 'c')])
}

it('requests that come while commits rest share the next one, and all are stored', async () => {
  await commitThree(64)
  expect(commitsOfFrames).toEqual([1, 2])
  expect(await producer.hget(keys.flow, 'acceptedPayloads')).toBe('68')
})

it('a request waits for no other if the clients are few', async () => {
  await commitThree(8)
  expect(commitsOfFrames).toEqual([1, 1, 1])
})
