import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createClickHouse } from '../../../clickhouse/client.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { DAY_MS, MIB } from '../../../schemas/units.ts'
import { Budget } from '../../../shared/concurrency/budget.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { newCommit } from '../../../shared/ids/receipt.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { decodeLetter } from '../../../shared/queue/letters/letter-object.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { queueKeys, shareMember } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { type StoreDeadLettersDeps, storeDeadLetters } from '../../../workers/dead-letters/store-dead-letters.ts'
import type { RefusedFrame } from '../../../workers/queue/letter-moves.ts'
import { RedisLetterQuota } from '../../../workers/queue/letter-quota.ts'
import { frameMoves } from '../../../workers/queue/moves.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { addMovedJobs } from '../../../workers/queue/process-frames.ts'
import { createJobAdder } from '../../../workers/queue/sweep.ts'
import { collect } from '../../support/oracles/collect.ts'
import { queueOn } from '../../support/queue-on.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/3`
const redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
const jobs = createJobAdder(queueOn(redis))
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
const database = await createTestDatabase(services.clickhouseUrl, `dead_letters_${process.pid}`)
const clickhouse = createClickHouse({
  url: services.clickhouseUrl,
  user: 'default',
  password: '',
  database: database.name,
})
let pools: TestPools | undefined
let surface: { workspaceId: string; surfaceId: string }

beforeEach(async () => {
  await stopPools()
  await redis.flushdb()
  surface = { workspaceId: newId('ws'), surfaceId: newId('srf') }
})

afterAll(async () => {
  await stopPools()
  await jobs.close()
  objects.close()
  await clickhouse.close()
  await database.drop()
  redis.disconnect()
})

async function stopPools(): Promise<void> {
  await pools?.stop()
  pools = undefined
}

function start(queues: readonly QueueName[], settings: Record<string, string> = {}): TestPools {
  pools = startPools(queues, { ...services, redisUrl }, database.name, settings)
  return pools
}

const RECEIVED = Date.UTC(2026, 10, 20, 12)

function frame(body: Buffer, index = 0, changes: Partial<PayloadFrame> = {}): PayloadFrame {
  const commit = newCommit('traces', RECEIVED)
  const at = Buffer.alloc(4)
  at.writeUInt32BE(index)
  return {
    ...surface,
    receivedAtMs: RECEIVED,
    contentType: 'application/x-protobuf',
    contentEncoding: 'gzip',
    attributes: '',
    receipt: Buffer.concat([commit, at]).toString('latin1'),
    body,
    ...changes,
  }
}

/** Puts a job with these frames into a queue, as a worker moves it there. */
async function enqueue(queue: QueueName, jobId: string, frames: readonly PayloadFrame[]): Promise<void> {
  const store = new RedisPayloadStore(queueOn(redis, queue))
  const moves = frameMoves(queue, jobId, frames)
  await redis.set(queueKeys(queue).payload('finished'), 'x')
  await store.finishJob('finished', { frames: 0, bytes: 0, shares: new Map() }, moves)
  await addMovedJobs(jobs.add, moves)
}

async function backlog(queue: QueueName): Promise<number> {
  const flow = await redis.hgetall(queueKeys(queue).flow)
  return Number(flow.acceptedBytes ?? 0) - Number(flow.doneBytes ?? 0)
}

const allDone = (...queues: QueueName[]) =>
  until('the queues are empty', async () => (await Promise.all(queues.map(backlog))).every(bytes => bytes === 0), {
    deadlineMs: 30_000,
  })

interface Row {
  readonly job_id: string
  readonly job_index: number
  readonly object_key: string
  readonly object_offset: string
  readonly object_length: string
  readonly [column: string]: unknown
}
const rows = () =>
  database.rows<Row>(
    `SELECT *, hex(receipt) AS receipt FROM dead_letters
     WHERE workspace_id = '${surface.workspaceId}' ORDER BY job_id, job_index`,
  )

function payloadsOf(queue: QueueName): StoreDeadLettersDeps['store'] {
  const store = new RedisPayloadStore(queueOn(redis, queue))
  return {
    look: jobId => store.look(jobId),
    holdsLocks: async () => true,
    finishJob: (jobId, done, moves) => store.finishJob(jobId, done, moves),
    giveBack() {},
  }
}

/** Reads a letter by its range alone. */
async function read({ object_key, object_offset, object_length }: Row): Promise<PayloadFrame> {
  const offset = Number(object_offset)
  const object = await objects.getStream(object_key, { start: offset, end: offset + Number(object_length) })
  if (object === undefined) throw new Error(`there is no ${object_key}`)
  return decodeLetter(Buffer.concat(await collect(object.body)), object.metadata)
}

const QUEUES = ['traces', 'dead-letters', 'dead-letter-index', 'receipts'] as const

describe('dead letters', () => {
  it('of a flood are few objects, each of them indexed once, and each is read by its range', async () => {
    const frames = Array.from({ length: 5_000 }, (_, i) => frame(Buffer.from(`undecodable ${i}`), i))
    for (let job = 0; job < 10; job++) {
      await enqueue('traces', `job-${job}`, frames.slice(job * 500, (job + 1) * 500))
    }
    start(QUEUES)
    await allDone(...QUEUES)
    const found = await rows()
    expect(found.map(row => [row.job_id, row.job_index])).toEqual(
      Array.from({ length: 5_000 }, (_, i) => [`job-${Math.floor(i / 500)}`, i % 500]),
    )
    expect(new Set(found.map(row => row.object_key)).size).toBeLessThanOrEqual(10)
    expect(found[7]).toMatchObject({
      surface_id: surface.surfaceId,
      queue: 'traces',
      received_at: '2026-11-20 12:00:00.000',
      reason: 'bad_compression',
      receipt: Buffer.from(frames[7]?.receipt ?? '', 'latin1')
        .toString('hex')
        .toUpperCase(),
      stored_tables: [],
    })
    for (const row of [found[0], found[777], found[4_999]]) {
      const sent = frames[Number(row?.job_id.slice(4)) * 500 + Number(row?.job_index)]
      expect(await read(row as Row)).toMatchObject({ ...sent, attributes: expect.any(String) })
    }
  })

  it('name the rejected records of a request whose others are stored', async () => {
    const spans = Array.from({ length: 10 }, (_, i) => ({
      traceId: (i === 4 ? '0' : '1').repeat(32),
      spanId: '2'.repeat(16),
      name: `span ${i}`,
    }))
    const body = gzipSync(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] }))
    await enqueue('traces', 'partly', [frame(body, 0, { contentType: 'application/json' })])
    start(QUEUES)
    await allDone(...QUEUES)
    const [row] = await rows()
    expect(row).toMatchObject({
      reason: 'records_rejected',
      stored_records: 9,
      rejected: { invalid_trace_id: 1 },
      rejected_records: [{ index: 4, reason: 'invalid_trace_id' }],
    })
    expect((await read(row as Row)).body).toEqual(body)
  })

  it('are stored and indexed once if their worker dies before it has finished the job', async () => {
    await enqueue('traces', 'job', [frame(Buffer.from('undecodable'))])
    start(['traces'])
    await allDone('traces')
    await stopPools()
    const { payload } = queueKeys('dead-letters')
    const [key = ''] = await redis.keys(payload('*'))
    const jobId = key.slice(payload('').length)
    const dying: StoreDeadLettersDeps = {
      objects,
      store: {
        ...payloadsOf('dead-letters'),
        finishJob: () => Promise.reject(new Error('the worker is dead')),
      },
      memory: new Budget(MIB),
      addJobs: jobs.add,
      logger: pino({ level: 'silent' }),
      stopping: new AbortController().signal,
    }
    await expect(
      storeDeadLetters(dying, { jobId, lane: 'express', token: '', payloadBytes: 100, losses: 0 }),
    ).rejects.toThrow('the worker is dead')
    start(QUEUES)
    await allDone(...QUEUES)
    const found = await rows()
    expect(found).toHaveLength(1)
    const kept = await collect(objects.list(`dead-letters/${surface.workspaceId}/`))
    expect(kept.flat().map(({ key }) => key)).toEqual([found[0]?.object_key])
  })

  it('count as the work of their surface until they are stored', async () => {
    await enqueue('traces', 'job', [frame(Buffer.alloc(5_000, 'x')), frame(Buffer.alloc(3_000, 'x'), 1)])
    start(['traces'])
    await allDone('traces')
    const { shares } = queueKeys('dead-letters')
    const held = await redis.zscore(shares, shareMember(surface))
    expect(Number(held)).toBeGreaterThan(8_000)
    expect(Number(held)).toBeLessThan(10_000)
    await stopPools()
    start(QUEUES)
    await allDone(...QUEUES)
    expect(await redis.zcard(shares)).toBe(0)
  })

  it('over the bound of their surface are counted, and leave nothing else behind', async () => {
    const frames = Array.from({ length: 1_000 }, (_, i) => frame(Buffer.alloc(1_000, 'x'), i))
    for (let job = 0; job < 10; job++) await enqueue('traces', `job-${job}`, frames.slice(job * 100, (job + 1) * 100))
    const other = { surfaceId: newId('srf') }
    await enqueue('traces', 'other', [frame(Buffer.from('of another surface'), 0, other)])
    const { metrics } = start(QUEUES, { DEAD_LETTER_MAX_BYTES_PER_DAY: '250000' })
    await allDone(...QUEUES)
    const found = await rows()
    expect(found.filter(row => row.surface_id === surface.surfaceId)).toHaveLength(250)
    expect(found.filter(row => row.surface_id === other.surfaceId)).toHaveLength(1)
    const counts = await database.rows<{ kept: string; discarded: string }>(
      `SELECT sum(dead_lettered['bad_compression']) AS kept, sum(discarded['bad_compression']) AS discarded
       FROM ingest_log WHERE surface_id = '${surface.surfaceId}'`,
    )
    expect(counts.map(({ kept, discarded }) => [Number(kept), Number(discarded)])).toEqual([[250, 750]])
    const reported = await metrics()
    expect(reported).toMatch(/penstock_dead_letters_total\{queue="traces",outcome="discarded",process="test"\} 750/)
    expect(reported).toMatch(/penstock_queue_bytes\{queue="dead-letters",process="test"\} 0/)
  })
})

describe('the bound of dead letters', () => {
  const limits = { maxBytes: 1_000, maxLetters: 5 }
  const request = (bytes: number, changes: Partial<PayloadFrame> = {}): RefusedFrame => ({
    jobId: 'job',
    index: 0,
    frame: frame(Buffer.alloc(bytes), 0, changes),
    reason: { label: 'truncated' },
  })
  const quota = () => new RedisLetterQuota(redis, limits)

  it('is shared by all workers, and separate for each surface and day of arrival', async () => {
    expect(await quota().admit('traces', 'a', [request(400), request(400)])).toEqual([true, true])
    expect(await quota().admit('logs', 'b', [request(150), request(150)])).toEqual([true, false])
    const others = [
      request(900, { surfaceId: 'srf_other' }),
      request(900, { workspaceId: 'ws_other' }),
      request(900, { receivedAtMs: RECEIVED + DAY_MS }),
    ]
    expect(await quota().admit('traces', 'c', others)).toEqual([true, true, true])
    expect(
      await quota().admit(
        'traces',
        'd',
        Array.from({ length: 7 }, () => request(1, { surfaceId: 'small' })),
      ),
    ).toEqual([true, true, true, true, true, false, false])
  })

  it('is four times as large for all surfaces of a workspace together, and other workspaces have theirs', async () => {
    const ofSurface = (i: number) => request(900, { surfaceId: `srf_${i}` })
    const [first, second] = [[1, 2, 3, 4, 5].map(ofSurface), [6, 7, 8].map(ofSurface)]
    expect(await quota().admit('traces', 'a', first)).toEqual([true, true, true, true, false])
    expect(await quota().admit('logs', 'b', second)).toEqual([false, false, false])
    expect(await quota().admit('logs', 'd', [request(900, { workspaceId: 'ws_other' })])).toEqual([true])
    const tomorrow = { receivedAtMs: RECEIVED + DAY_MS }
    expect(await quota().admit('logs', 'e', [request(900, tomorrow)])).toEqual([true])
    expect(await quota().admit('traces', 'a', first)).toEqual([true, true, true, true, false])
  })

  it('of a workspace is not used up by letters over the bound of one surface', async () => {
    for (let i = 0; i < 20; i++) await quota().admit('traces', `flood ${i}`, [request(900), request(900)])
    expect(await quota().admit('traces', 'other', [request(900, { surfaceId: 'srf_other' })])).toEqual([true])
  })

  it('decides about a job once, even if the bound is reached before the job is processed again (count-letters.lua)', async () => {
    const job = [request(400), request(700)]
    expect(await quota().admit('traces', 'first', job)).toEqual([true, false])
    expect(await quota().admit('traces', 'second', [request(100)])).toEqual([false])
    expect(await quota().admit('traces', 'first', job)).toEqual([true, false])
    expect(await quota().admit('logs', 'first', job)).toEqual([false, false])
  })

  it('decides again about a job that is refused as a whole after some of its requests were', async () => {
    const [first, second] = [request(900), { ...request(900, { surfaceId: 'srf_other' }), index: 1 }]
    expect(await quota().admit('traces', 'job', [second])).toEqual([true])
    expect(await quota().admit('traces', 'job', [first, second])).toEqual([true, false])
    expect(await quota().admit('traces', 'next', [first])).toEqual([false])
  })

  it('leaves only its counters in Redis once it is reached, and these expire', async () => {
    await quota().admit('traces', 'first', [request(2_000)])
    const before = (await redis.keys('*')).length
    for (let i = 0; i < 50; i++) await quota().admit('traces', `job ${i}`, [request(2_000)])
    const keys = await redis.keys('*')
    expect(keys).toHaveLength(before)
    for (const key of keys) expect(await redis.ttl(key)).toBeGreaterThan(0)
  })
})
