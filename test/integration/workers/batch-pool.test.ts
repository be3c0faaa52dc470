import { gzipSync } from 'node:zlib'
import { ClickHouseError } from '@clickhouse/client'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { MIB, MINUTE_MS } from '../../../schemas/units.ts'
import { decodePayload, encodePayload, type PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { LANES, openQueue, queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer, connectProducer } from '../../../shared/queue/redis.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import { readWaitingJobs } from '../../../workers/queue/backlog.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { startPool, type TakenJob } from '../../../workers/queue/pool.ts'
import { createJobAdder, sweep } from '../../../workers/queue/sweep.ts'
import { Batch } from '../../../workers/sink/batch.ts'
import { JOB_LIMITS } from '../../../workers/sink/job-limits.ts'
import type { InsertPace } from '../../../workers/sink/pace/insert-pace.ts'
import { commitFrame, openExpressCommits } from '../../support/express-commits.ts'
import { listDeadLetters } from '../../support/oracles/list-dead-letters.ts'
import { TextBatch, TokenStore } from '../../support/oracles/text-batch.ts'
import { onOneServer, queueOn, queuesAt } from '../../support/queue-on.ts'
import { startPools, startTestPool } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const url = `${services.redisUrl}/7`
const logger = pino({ level: 'silent' })
const keys = queueKeys('traces')
const opened: (() => Promise<unknown> | unknown)[] = []
let redis: Redis

beforeEach(async () => {
  redis = connectConsumer(url, logger)
  await redis.flushdb()
})

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
  redis.disconnect()
})

function frame(body: string): PayloadFrame {
  return {
    workspaceId: 'ws_1',
    surfaceId: 'srf_1',
    receivedAtMs: Date.UTC(2026, 10, 20),
    contentType: 'application/x-protobuf',
    contentEncoding: 'identity',
    attributes: '',
    body: Buffer.from(body),
  }
}

async function edge(maxCommitFrames = 8) {
  const producer = connectProducer(url, 20_000, logger)
  opened.push(() => producer.disconnect())
  const commit = openExpressCommits(producer, { maxCommitBytes: MIB, maxCommitFrames, timeoutMs: 20_000 })
  const enqueue = async (frame: PayloadFrame) => commitFrame(commit, frame)
  await until('the queue is open', () =>
    enqueue(frame('opening')).then(
      () => true,
      () => false,
    ),
  )
  return { enqueue, drain: () => commit.drain() }
}

interface WorkerOptions extends Omit<Partial<Parameters<typeof startTestPool>[0]>, 'options'> {
  readonly maxRows?: number
  readonly maxWaitMs?: number
}

function worker(store: TokenStore, { maxRows = 50, maxWaitMs = 100, ...options }: WorkerOptions = {}) {
  const plan = {
    queue: 'traces',
    kind: 'traces',
    createRows: () => new TextBatch(),
    insert: store.insert,
    burnToken: store.burnToken,
    condemnAfter: { attempts: 3, ms: 300 },
    options: { maxRows, maxWaitMs, jobLimits: { ...JOB_LIMITS, maxDecodedBytes: 10_000 } },
  } as const
  const pool = startTestPool({ ...plan, ...options }, { ...services, redisUrl: url })
  opened.push(pool.close)
  return pool
}

async function backlog(queue: QueueName = 'traces'): Promise<number> {
  const flow = await redis.hgetall(queueKeys(queue).flow)
  return Number(flow.acceptedPayloads ?? 0) - Number(flow.donePayloads ?? 0)
}

/** Expects that Redis contains no payload, batch or job of the queue `traces`. */
async function expectAllDone(): Promise<void> {
  await until('every payload is done', async () => (await backlog()) === 0)
  expect(await redis.keys(`${keys.payloadPrefix}*`)).toEqual([])
  expect(await redis.hlen(keys.batchOf)).toBe(0)
  expect(await redis.hlen(keys.batches)).toBe(0)
  const flow = await redis.hgetall(keys.flow)
  expect(flow.doneBytes).toBe(flow.acceptedBytes)
  for (const lane of LANES) {
    const queue = openQueue(redis, queueKeys('traces'), lane)
    await until('every job is gone', async () => {
      const counts = await queue.getJobCounts('wait', 'prioritized', 'active', 'delayed', 'failed', 'completed')
      return Object.values(counts).every(count => count === 0)
    })
    await queue.close()
  }
}

describe('a pool of named batches', () => {
  it('stores every acknowledged payload exactly once, in far fewer inserts', async () => {
    const commit = await edge()
    const sent = Array.from({ length: 500 }, (_, i) => `row ${i}`)
    const store = new TokenStore()
    worker(store)
    await Promise.all(sent.map(line => commit.enqueue(frame(line))))
    await expectAllDone()
    for (const table of ['first', 'second']) expect(store.lines(table).sort()).toEqual(['opening', ...sent].sort())
    expect(store.inserts.length).toBeLessThan(sent.length / 2)
  })

  it.each(['first', 'second'])(
    'repeats an insert into the %s table whose confirmation was lost, under its token',
    async table => {
      const commit = await edge()
      const store = new TokenStore()
      let lost = 0
      store.after = insert => {
        if (insert.table === table && lost++ < 2) TokenStore.lost()
      }
      worker(store)
      await commit.enqueue(frame('a\nb'))
      await expectAllDone()
      expect(lost).toBeGreaterThan(1)
      for (const name of ['first', 'second']) expect(store.lines(name).sort()).toEqual(['a', 'b', 'opening'])
    },
  )

  it.each([
    ['before its first insert', 'first', 'before'],
    ['after an insert has landed', 'first', 'after'],
    ['between two tables', 'second', 'before'],
  ] as const)('forms the same batch again when its worker dies %s', async (_when, table, moment) => {
    const commit = await edge()
    const store = new TokenStore()
    let died = false
    const death = new Promise<never>(() => {})
    store[moment] = insert => {
      if (insert.table !== table || !insert.lines.includes('row 3')) return
      died = true
      return death
    }
    await Promise.all(Array.from({ length: 30 }, (_, i) => commit.enqueue(frame(`row ${i}`))))
    await commit.drain()
    const all = Promise.withResolvers<void>()
    let decoded = 0
    // A worker that takes the jobs and then does nothing, as after kill -9: it does not renew its locks.
    const dead = worker(store, {
      takesJobs: false,
      paceOf: () => ({ next: () => all.promise }),
      maxRows: 1_000,
      onJobDecoded() {
        if (++decoded === jobIds.length) all.resolve()
      },
    })
    const queue = openQueue(redis, queueKeys('traces'), 'express')
    const jobIds = (await queue.getWaiting()).map(job => job.id as string)
    for (const jobId of jobIds) {
      await redis.set(keys.lock('express', jobId), 'the dead worker', 'PX', 10_000)
      const job = { jobId, lane: 'express', token: 'the dead worker', payloadBytes: 100, losses: 0 } as const
      void dead.process(job).catch(() => {})
    }
    await queue.close()
    await until('the worker is dead', () => died)
    const named = await redis.hgetall(keys.batches)
    expect(Object.keys(named)).toHaveLength(1)
    store[moment] = () => {}
    worker(store)
    await expectAllDone()
    const expected = ['opening', ...Array.from({ length: 30 }, (_, i) => `row ${i}`)].sort()
    for (const name of ['first', 'second']) expect(store.lines(name).sort()).toEqual(expected)
    expect(new Set(store.inserts.map(insert => insert.token.split(':')[0]))).toEqual(new Set(Object.keys(named)))
  })

  it('does not insert after its locks were lost', async () => {
    const commit = await edge()
    const store = new TokenStore()
    const { storer } = worker(store)
    await expectAllDone()
    await commit.enqueue(frame('late'))
    await expectAllDone()
    const rows = new TextBatch()
    rows.append(frame('late'), Buffer.from('late'))
    const batch = new Batch({ queue: 'traces', kind: 'traces' }, rows)
    const named = { batchId: 'stale', jobIds: ['gone'], storedTables: [], formed: batch.formation() }
    await expect(storer.store(named, batch, [{ jobId: 'gone', lane: 'express', token: 'mine' }])).rejects.toThrow(
      /lock/,
    )
    expect(store.lines('first').filter(line => line === 'late')).toHaveLength(1)
  })

  it('fills the open batch while earlier inserts occupy the slots', async () => {
    const commit = await edge(1)
    const store = new TokenStore()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    let busy = 0
    store.before = insert => {
      if (insert.lines.length > 1 || !['slow 1', 'slow 2'].includes(insert.lines[0] as string)) return
      busy++
      return released
    }
    worker(store)
    await until('the backlog is empty', async () => (await backlog()) === 0)
    for (const [i, line] of ['slow 1', 'slow 2'].entries()) {
      await commit.enqueue(frame(line))
      await until('a slot is taken', () => busy === i + 1)
    }
    await commit.enqueue(frame('early'))
    const early = Date.now()
    await until('the batch is old enough to be stored', () => Date.now() > early + 200)
    await commit.enqueue(frame('late'))
    await until('both jobs are active', async () => (await redis.llen(`${keys.bull}:express:active`)) === 4)
    const late = Date.now()
    await until('the late payload is decoded', () => Date.now() > late + 50)
    release()
    await expectAllDone()
    expect(store.inserts.filter(insert => insert.table === 'first').map(insert => insert.lines)).toContainEqual([
      'early',
      'late',
    ])
  })

  it('splits a job whose requests decompress to more than the limit, and stores each request once', async () => {
    const commit = await edge(64)
    const store = new TokenStore()
    const bombs = Array.from({ length: 32 }, (_, i) => `${i} `.padEnd(4_000, 'x'))
    const neighbours = ['n1', 'n2', 'n3']
    const compressed = (line: string) => ({ ...frame(''), contentEncoding: 'gzip', body: gzipSync(line) }) as const
    await Promise.all([
      ...neighbours.map(line => commit.enqueue(frame(line))),
      ...bombs.map(line => commit.enqueue(compressed(line))),
    ])
    worker(store)
    await expectAllDone()
    for (const table of ['first', 'second']) {
      expect(store.lines(table).sort()).toEqual(['opening', ...neighbours, ...bombs].sort())
    }
    const largest = Math.max(...store.inserts.map(insert => insert.lines.filter(line => line.length === 4_000).length))
    expect(largest).toBeLessThanOrEqual(4)
  })

  it('does not treat a batch as stored that another worker has split or stored', async () => {
    const { storer } = worker(new TokenStore())
    const named = { batchId: 'split by another', jobIds: ['a'], storedTables: [] }
    expect(await storer.store(named, new Batch({ queue: 'traces', kind: 'traces' }, new TextBatch()), [])).toBe(false)
  })

  it('names a batch for all its jobs or for none', async () => {
    const store = new RedisPayloadStore(queueOn(redis, 'traces'))
    for (const jobId of ['a', 'b', 'c']) {
      await redis.set(keys.payload(jobId), 'x')
      await redis.set(keys.lock('express', jobId), `lock of ${jobId}`)
    }
    const job = (jobId: string) => ({ jobId, lane: 'express', token: `lock of ${jobId}` }) as const
    expect(await store.nameBatch('one', [job('a'), job('b')])).toEqual(new Map())
    expect(await store.nameBatch('one', [job('a'), job('b')])).toEqual(new Map()) // sent twice
    expect(await store.nameBatch('two', [job('b'), job('c')])).toEqual(new Map([['b', 'named']]))
    expect(await store.nameBatch('two', [job('c'), job('d')])).toEqual(new Map([['d', 'stored']]))
    expect(await store.nameBatch('two', [{ ...job('c'), token: 'of another' }])).toEqual(new Map([['c', 'lost']]))
    expect(await redis.hgetall(keys.batchOf)).toEqual({ a: 'one', b: 'one' })
    expect(Object.keys(await redis.hgetall(keys.batches))).toEqual(['one'])
  })
})

describe('the inserts of a pool', () => {
  /** Returns how many batches are stored or about to be. */
  const batchesOf = (store: TokenStore) => store.inserts.filter(({ table }) => table === 'first').length

  /** Sends requests one after the other until four of them, with the first, are stored, each in a batch of its own. */
  async function usePause(commit: Awaited<ReturnType<typeof edge>>, store: TokenStore): Promise<void> {
    for (let sent = 1; sent < 4; sent++) {
      await until(`${sent} batches are stored`, () => batchesOf(store) === sent)
      await commit.enqueue(frame(`after a pause ${sent}`))
    }
    await until('four batches are stored', () => batchesOf(store) === 4)
  }

  it('follow a pause at once, and gather afterwards in all workers until they are due or the pools are closed', async () => {
    const commit = await edge(1)
    const store = new TokenStore()
    const workers = [1, 2, 3].map(() => worker(store, { intervalMs: MINUTE_MS }))
    await usePause(commit, store)
    const gathered = [...'abcdefghijkl']
    for (const line of gathered) await commit.enqueue(frame(line))
    await commit.drain()
    await until('every payload was read', async () => (await redis.scard(keys.open)) === 0)
    expect(batchesOf(store)).toBe(4)
    await Promise.all(workers.map(({ closePool }) => closePool()))
    await expectAllDone()
    expect(
      store
        .lines('second')
        .filter(line => line.length === 1)
        .sort(),
    ).toEqual(gathered)
  })

  it('wait for no time once their batch is full', async () => {
    const commit = await edge(1)
    const store = new TokenStore()
    worker(store, { intervalMs: MINUTE_MS, maxRows: 3 })
    await usePause(commit, store)
    await commit.enqueue(frame('a\nb\nc'))
    await expectAllDone()
    expect(batchesOf(store)).toBe(5)
  })

  it('do not follow the time of a batch that was full before it had come', async () => {
    const commit = await edge(1)
    const store = new TokenStore()
    const times: PromiseWithResolvers<void>[] = []
    const next = () => {
      const time = Promise.withResolvers<void>()
      times.push(time)
      return time.promise
    }
    let decoded = 0
    worker(store, { maxRows: 3, paceOf: () => ({ next }), onJobDecoded: () => decoded++ })
    await until('the first payload is decoded', () => decoded === 1)
    await commit.enqueue(frame('a\nb'))
    await until('a batch is full', () => batchesOf(store) === 1)
    await commit.enqueue(frame('c'))
    await until('the next batch is open', () => decoded === 3)
    times[0]?.resolve()
    await commit.enqueue(frame('d\ne'))
    await expectAllDone()
    const first = store.inserts.filter(({ table }) => table === 'first')
    expect(first.map(({ lines }) => lines)).toEqual([
      ['opening', 'a', 'b'],
      ['c', 'd', 'e'],
    ])
  })

  /** Starts a worker whose first insert waits until `release` is called, and whose batches are due at once. */
  async function duringInsert(maxWaitMs: number, pace: Pick<InsertPace, 'next'> = { next: async () => {} }) {
    const commit = await edge(1)
    const store = new TokenStore()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    let isBusy = false
    store.before = ({ lines }) => {
      isBusy ||= lines.includes('opening')
      return lines.includes('opening') ? released : undefined
    }
    let decoded = 0
    const { closeBatches } = worker(store, { maxRows: 3, maxWaitMs, paceOf: () => pace, onJobDecoded: () => decoded++ })
    await until('the first batch is being inserted', () => isBusy)
    const decode = async (line: string) => {
      const before = decoded
      await commit.enqueue(frame(line))
      await until(`${line} is decoded`, () => decoded > before)
    }
    const batches = () => store.inserts.filter(({ table }) => table === 'first').map(({ lines }) => lines)
    return { closeBatches, decode, release, batches }
  }

  it.each([
    ['due', ['a', 'b']],
    ['full', ['a', 'b', 'c']],
  ])('follow one another, so that batches grow while ClickHouse is slow, until they are %s', async (_state, lines) => {
    const { decode, release, batches } = await duringInsert(MINUTE_MS)
    for (const line of lines) await decode(line)
    expect(batches()).toEqual([])
    release()
    await expectAllDone()
    expect(batches()).toEqual([['opening'], lines])
  })

  it.each([
    ['due', ['a']],
    ['full', ['a', 'b', 'c']],
  ])('are made beside one that takes long, if their batch is %s', async (_state, lines) => {
    const { decode, release, batches } = await duringInsert(20)
    await decode(lines.join('\n'))
    await until('the batch is stored', () => batches().length === 1)
    release()
    await expectAllDone()
    expect(batches()).toEqual([lines, ['opening']])
  })

  it('are made for the batch that is open, although one before it was full before its time', async () => {
    const times = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const waits = [Promise.resolve(), times[0].promise, times[1].promise]
    const fullBefore: boolean[] = []
    const { decode, release, batches } = await duringInsert(20, {
      next(wasFull = false) {
        fullBefore.push(wasFull)
        return waits.shift() ?? Promise.resolve()
      },
    })
    await decode('a\nb\nc')
    await until('the full batch is stored', () => batches().length === 1)
    await decode('d')
    times[0].resolve()
    await decode('e')
    times[1].resolve()
    await until('the open batch is stored', () => batches().length === 2)
    release()
    await expectAllDone()
    expect(batches()).toEqual([['a', 'b', 'c'], ['d', 'e'], ['opening']])
    expect(fullBefore).toEqual([false, false, true])
  })

  it('are made beside another once the pool is closing', async () => {
    const { closeBatches, decode, release, batches } = await duringInsert(MINUTE_MS)
    await decode('a')
    closeBatches()
    await until('the open batch is stored', () => batches().length === 1)
    await decode('b')
    await until('the next batch is stored', () => batches().length === 2)
    release()
    await expectAllDone()
    expect(batches()).toEqual([['a'], ['b'], ['opening']])
  })

  it('wait for no time once the pool is closing', async () => {
    const commit = await edge(1)
    const store = new TokenStore()
    const { closeBatches } = worker(store, { intervalMs: MINUTE_MS })
    await usePause(commit, store)
    closeBatches()
    await commit.enqueue(frame('a'))
    await expectAllDone()
    expect(batchesOf(store)).toBe(5)
  })
})

describe('a payload that cannot be stored', () => {
  it('is isolated when ClickHouse refuses it, kept with its reason, and the others of its batch are stored once', async () => {
    const commit = await edge()
    const store = new TokenStore()
    await Promise.all([...'abcdefghijklm'].map(line => commit.enqueue(frame(line === 'g' ? 'poison' : line))))
    worker(store)
    const letters = startPools(['dead-letters'], { ...services, redisUrl: url }, 'default')
    opened.push(letters.stop)
    await commit.enqueue(frame('undecodable bytes'))
    await expectAllDone()
    await until('the dead letters are kept', async () => (await backlog('dead-letters')) === 0)
    const stored = ['opening', ...'abcdefhijklm'].sort()
    expect(store.lines('second').sort()).toEqual(stored)
    // The table before the refusing one has stored the refused row once; it is not written again.
    expect(store.lines('first').sort()).toEqual([...stored, 'poison'].sort())
    // Each has a row in the log with its outcome.
    const log = store.lines('ingest_log').join('\n')
    expect(log).toContain('refused_by_clickhouse')
    expect(log).toContain('truncated')
    const kept = await listDeadLetters(services.s3, 'dead-letters/ws_1/srf_1/traces/2026-11-20/')
    const recent = kept.filter(letter => ['poison', 'undecodable bytes'].includes(letter.body.toString()))
    const describe = ({ body, reason, storedTables }: (typeof kept)[number]) => [body.toString(), reason, storedTables]
    // A replay of the letter must not write the first table again.
    expect(recent.map(describe).sort()).toEqual([
      ['poison', 'refused_by_clickhouse: no poison, please', ['first']],
      ['undecodable bytes', 'truncated', []],
    ])
  })
})

describe('a job that several workers have lost', () => {
  /** Returns a pool whose worker takes nothing by itself. */
  function idlePool() {
    const store = new TokenStore()
    const { process, store: payloads } = worker(store, { takesJobs: false })
    return { store, process, payloads }
  }

  /** Puts a locked job with these two requests into Redis. */
  async function takenJob(name: string, losses: number): Promise<TakenJob> {
    const payload = encodePayload([frame(name), frame(`${name} two`)])
    await redis.set(keys.payload(name), payload)
    await redis.set(keys.lock('bulk', name), 'mine')
    return { jobId: name, lane: 'bulk', token: 'mine', payloadBytes: payload.length, losses }
  }

  it('is stored alone, and a repetition does nothing', async () => {
    const { store, process } = idlePool()
    const [first, second] = [await takenJob('first', 3), await takenJob('second', 3)]
    await Promise.all([process(first), process(second)])
    await process(first)
    const inserts = store.inserts.filter(insert => insert.table === 'first').map(insert => insert.lines)
    expect(inserts.sort()).toEqual([
      ['first', 'first two'],
      ['second', 'second two'],
    ])
  })

  it('becomes dead letters undecoded when it was alone twice without an end', async () => {
    const { store, process, payloads } = idlePool()
    const job = await takenJob('killer', 5)
    for (let i = 0; i < 2; i++) await payloads.countAlone('killer')
    await process(job)
    expect(store.lines('first')).toEqual([])
    expect(await redis.exists(keys.payload('killer'))).toBe(0)
    const [moved] = await redis.keys(`${queueKeys('dead-letters').payloadPrefix}dead-*`)
    const letters = decodePayload((await redis.getBuffer(moved as string)) as Buffer)
    expect(letters.map(({ body, attributes }) => [body.toString(), JSON.parse(attributes).reason])).toEqual([
      ['killer', 'killed_worker: 5 workers ended while they had it'],
      ['killer two', 'killed_worker: 5 workers ended while they had it'],
    ])
  })

  it('is resumed with the other jobs of its batch, under the tokens of that batch', async () => {
    const { store, process, payloads } = idlePool()
    const jobs = [await takenJob('a', 9), await takenJob('b', 9)]
    expect(await payloads.nameBatch('of both', jobs)).toEqual(new Map())
    await Promise.all(jobs.map(job => process(job)))
    expect(store.inserts.map(insert => [insert.table, insert.token])).toContainEqual(['first', 'of both:first'])
    expect(store.lines('first')).toEqual(['a', 'a two', 'b', 'b two'])
  })
})

/** A time at which no job of a fresh payload can still be on its way. */
const later = () => Date.now() + 60_000

describe('a batch that ClickHouse refuses again and again with a code that is not of the content', () => {
  const refusal = (code: string) =>
    new TransientError(`ClickHouse ${code}`, { cause: new ClickHouseError({ message: 'Code', code, type: 'MEMORY' }) })

  it('is divided while others of its table are accepted, until the request at fault is alone', async () => {
    const commit = await edge()
    const store = new TokenStore()
    store.before = ({ table, lines }) => {
      if (table === 'second' && lines.includes('too much')) throw refusal('241')
    }
    worker(store)
    const sent = [...'abcdefghijklm']
    await Promise.all(['too much', ...sent].map(line => commit.enqueue(frame(line))))
    let others = 0
    await until('the dead letter is moved', async () => {
      await commit.enqueue(frame(`other ${others++}`))
      return (await backlog('dead-letters')) === 1
    })
    await expectAllDone()
    const expected = ['opening', ...sent, ...Array.from({ length: others }, (_, i) => `other ${i}`)].sort()
    expect(store.lines('second').sort()).toEqual(expected)
    expect(store.lines('first').sort()).toEqual([...expected, 'too much'].sort())
    const [moved = ''] = await redis.keys(queueKeys('dead-letters').payload('dead-*'))
    const [letter] = decodePayload((await redis.getBuffer(moved)) as Buffer)
    expect(letter?.body.toString()).toBe('too much')
    expect(JSON.parse(letter?.attributes ?? '')).toMatchObject({
      reason: expect.stringContaining('refused_by_clickhouse: refused again and again: ClickHouse 241'),
      storedTables: ['first'],
    })
  }, 60_000)

  it('is kept while ClickHouse refuses everything, and stored afterwards', async () => {
    const commit = await edge()
    const store = new TokenStore()
    let attempts = 0
    store.before = ({ table }) => {
      if (table === 'second' && attempts++ < 5) throw refusal('252')
    }
    worker(store)
    await commit.enqueue(frame('a'))
    await expectAllDone()
    expect(attempts).toBeGreaterThan(5)
    expect(store.lines('second').sort()).toEqual(['a', 'opening'])
    expect(await backlog('dead-letters')).toBe(0)
  }, 60_000)

  it('is stored when only one attempt was refused for its content, after one that timed out', async () => {
    const commit = await edge()
    const store = new TokenStore()
    let attempts = 0
    store.before = ({ table }) => {
      if (table !== 'second') return
      attempts++
      if (attempts === 1) TokenStore.lost()
      if (attempts === 2) throw new PermanentError('ClickHouse 33')
    }
    worker(store)
    await commit.enqueue(frame('a'))
    await expectAllDone()
    expect(store.lines('second').sort()).toEqual(['a', 'opening'])
    expect(await backlog('dead-letters')).toBe(0)
  })
})

it('counts the jobs that wait to be taken, and no others', async () => {
  const waiting = async () => (await readWaitingJobs(onOneServer(redis), ['traces', 'receipts']))?.get('traces')
  const commit = await edge()
  await commit.enqueue(frame('a'))
  await commit.drain()
  expect(await waiting()).toBe(1)
  worker(new TokenStore())
  await expectAllDone()
  expect(await waiting()).toBe(0)
})

it('the sweeper adds the missing job of a payload', async () => {
  const commit = await edge()
  await commit.enqueue(frame('orphan'))
  await commit.drain()
  const queue = openQueue(redis, queueKeys('traces'), 'express')
  await queue.obliterate({ force: true })
  await queue.close()
  const store = new TokenStore()
  worker(store)
  const jobs = createJobAdder(queueOn(redis))
  opened.push(() => jobs.close())
  expect(await sweep({ queue: queueOn(redis), common: redis, addJobs: jobs.add, logger, now: later })).toBe(1)
  await expectAllDone()
  expect(store.lines('first').sort()).toEqual(['opening', 'orphan'])
})

it('the sweeper looks only at what waits in its queue, however many other keys Redis has', async () => {
  const fill = redis.pipeline()
  for (let i = 0; i < 20_000; i++) fill.set(`other:${i}`, '')
  await fill.exec()
  const calls = async () => {
    const stats = await redis.info('commandstats')
    return Object.fromEntries(
      [...stats.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(([, name, n]) => [name, Number(n)]),
    )
  }
  const jobs = createJobAdder(queueOn(redis))
  opened.push(() => jobs.close())
  await redis.config('RESETSTAT')
  await sweep({ queue: queueOn(redis), common: redis, addJobs: jobs.add, logger, now: later })
  const { zrange = 0, scan = 0, keys: keysCalls = 0 } = await calls()
  expect({ zrange, scan, keysCalls }).toEqual({ zrange: 1, scan: 0, keysCalls: 0 })
})

it('the sweeper skips a payload that it cannot read', async () => {
  for (const jobId of ['a', 'b', 'c']) await redis.set(keys.payload(jobId), 'of another version')
  await redis.set(keys.payload('orphan'), encodePayload([frame('orphan')]))
  await redis.zadd(keys.pending, 0, 'a', 0, 'b', 0, 'c', 0, 'orphan')
  const jobs = createJobAdder(queueOn(redis))
  opened.push(() => jobs.close())
  expect(await sweep({ queue: queueOn(redis), common: redis, addJobs: jobs.add, logger, now: later })).toBe(1)
  expect(await redis.exists(keys.job('bulk', 'orphan'))).toBe(1)
})

it('a payload of a newer version waits until a worker can read it, and others are stored meanwhile', async () => {
  const commit = await edge()
  await commit.enqueue(frame('from a newer edge'))
  const newer = await redis.keys(keys.payload('*'))
  const bytes = await Promise.all(newer.map(name => redis.getBuffer(name)))
  const setVersion = async (version: number) => {
    for (const name of newer) await redis.setrange(name, 0, String.fromCharCode(version))
  }
  const version = bytes[0]?.[0] ?? 0
  await setVersion(99)
  const store = new TokenStore()
  worker(store)
  await until('the payload was read', async () => (await redis.scard(keys.open)) === 0)
  await commit.enqueue(frame('from an edge of this version'))
  await until('the other payload is stored', () => store.lines('second').length === 1)
  const attemptsOf = async (name: string) =>
    Number(await redis.hget(keys.job('express', name.slice(keys.payloadPrefix.length)), 'atm'))
  await until('each has failed twice', async () => (await Promise.all(newer.map(attemptsOf))).every(n => n >= 2))
  expect(store.lines('second')).toEqual(['from an edge of this version'])
  expect(await redis.exists(...newer)).toBe(newer.length)
  expect(await backlog('dead-letters')).toBe(0)
  // As if a worker of the newer version took the jobs.
  await setVersion(version)
  await expectAllDone()
  expect(store.lines('second').sort()).toEqual(['from a newer edge', 'from an edge of this version', 'opening'])
}, 30_000)

it('a named batch and a job of a newer version wait until a worker can read them, and others are stored meanwhile', async () => {
  const commit = await edge(1)
  const store = new TokenStore()
  const first = worker(store)
  await until('the queue is open', () => store.lines('second').includes('opening'))
  await first.closePool()
  await commit.enqueue(frame('in a newer batch'))
  await commit.enqueue(frame('of a newer job'))
  await commit.drain()
  const queue = openQueue(redis, queueKeys('traces'), 'express')
  const [named, announced] = (await queue.getWaiting()).map(job => job.id as string) as [string, string]
  await queue.close()
  const record = { version: 2, jobIds: [named], storedTables: [] }
  await redis.hset(keys.batchOf, named, 'newer')
  await redis.hset(keys.batches, 'newer', JSON.stringify(record))
  const data = (await redis.hget(keys.job('express', announced), 'data')) as string
  await redis.hset(keys.job('express', announced), 'data', JSON.stringify({ ...JSON.parse(data), version: 2 }))
  worker(store)
  await commit.enqueue(frame('of this version'))
  await until('the other payload is stored', () => store.lines('second').includes('of this version'))
  const attemptsOf = async (jobId: string) => Number(await redis.hget(keys.job('express', jobId), 'atm'))
  await until('each has failed twice', async () => (await attemptsOf(named)) >= 2 && (await attemptsOf(announced)) >= 2)
  expect(store.lines('second').sort()).toEqual(['of this version', 'opening'])
  expect(await backlog('dead-letters')).toBe(0)
  // As if a worker of the newer version took the jobs.
  await redis.hset(keys.batches, 'newer', JSON.stringify({ ...record, version: 1 }))
  await redis.hset(keys.job('express', announced), 'data', data)
  await expectAllDone()
  expect(store.lines('second').sort()).toEqual(['in a newer batch', 'of a newer job', 'of this version', 'opening'])
}, 30_000)

it('a job that fails again and again does not grow', async () => {
  let attempts = 0
  const pool = startPool(
    'traces',
    {
      queues: queuesAt(url, redis),
      logger,
      open: () => () => {
        attempts++
        return Promise.reject(new Error('not yet'))
      },
    },
    { concurrency: 1, lockMs: 5_000, stalledCheckMs: 500 },
  )
  opened.push(() => pool.close())
  const jobs = createJobAdder(queueOn(redis))
  opened.push(() => jobs.close())
  await jobs.add('traces', [{ jobId: 'failing', payload: Buffer.from('x'), frames: 1 }])
  await until('the job has failed three times', () => attempts === 3)
  const stacks = JSON.parse((await redis.hget(keys.job('bulk', 'failing'), 'stacktrace')) ?? '[]')
  expect(stacks).toHaveLength(1)
})
