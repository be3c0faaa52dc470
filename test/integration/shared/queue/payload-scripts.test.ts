import { Redis } from 'ioredis'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { acceptArguments, acceptKeys } from '../../../../ingest/commit/accept-script.ts'
import { HOUR_MS, MINUTE_MS } from '../../../../schemas/units.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { queueScript } from '../../../../shared/queue/queue-script.ts'
import { type Move, RedisPayloadStore } from '../../../../workers/queue/payloads/payload-store.ts'
import { queueOn } from '../../../support/queue-on.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const redis = new Redis(`${sharedServices().redisUrl}/15`)
const keys = queueKeys('traces')
const letters = queueKeys('dead-letters')
const store = new RedisPayloadStore(queueOn(redis, 'traces'))
const MEMBER = 'ws_a/srf_a'
const ARRIVED_AT_MS = 5 * HOUR_MS
const DONE = { frames: 2, bytes: 20, shares: new Map([[MEMBER, 10]]) }
const [accept, join] = [queueScript('accept'), queueScript('join')]

beforeEach(() => redis.flushdb())
afterAll(() => redis.disconnect())

/** Returns every key with its value, as Redis would restore it. */
async function everything(): Promise<Record<string, string | undefined>> {
  const names = (await redis.keys('*')).sort()
  const values = await Promise.all(names.map(name => redis.dumpBuffer(name)))
  return Object.fromEntries(names.map((name, i) => [name, values[i]?.toString('latin1')]))
}

/** Runs a change twice, of which the second must change nothing. Returns both results. */
async function twice<T>(change: () => Promise<T>): Promise<[T, T]> {
  const first = await change()
  const after = await everything()
  const second = await change()
  expect(await everything()).toEqual(after)
  return [first, second]
}

const argumentsOf = (jobId: string, lateMs = -MINUTE_MS) =>
  acceptArguments({
    ...{ jobId, deadlineMs: Date.now() - lateMs, arrivedAtMs: ARRIVED_AT_MS, frames: 2, bytes: 20 },
    surfaces: new Map([[MEMBER, { cost: 10, requests: 2 }]]),
  })

/** Accepts a payload that other requests may join, as an edge does. */
async function acceptPayload(jobId: string, lateMs?: number): Promise<unknown> {
  const payload = keys.payload(jobId)
  await redis.set(payload, `bytes of ${jobId}`, 'PX', MINUTE_MS)
  return accept.run(redis, [...acceptKeys(keys, payload, payload), keys.open], argumentsOf(jobId, lateMs))
}

async function joinPayload(jobId: string, lateMs?: number): Promise<unknown> {
  const { flow, shares, open, busy, arrivals } = keys
  await redis.rpush(keys.joined(jobId), 'more bytes')
  return join.run(redis, [keys.joined(jobId), flow, shares, open, busy, arrivals], argumentsOf(jobId, lateMs))
}

/** Accepts the payloads of these jobs, and takes the jobs as one worker. */
async function takeJobs(...jobIds: string[]) {
  for (const jobId of jobIds) {
    await acceptPayload(jobId)
    await redis.srem(keys.open, jobId)
    await redis.set(keys.lock('express', jobId), `lock of ${jobId}`)
  }
  return jobIds.map(jobId => ({ jobId, lane: 'express' as const, token: `lock of ${jobId}` }))
}

const batchOf = (batchId: string, ...jobIds: string[]) => ({ batchId, jobIds, storedTables: [] })
const formed = (decoder: number) => ({ decoder, tables: {}, digest: 1, refused: {} })

describe('accept.lua', () => {
  it('accepts a payload, which then has no expiry, and counts its requests', async () => {
    expect(await acceptPayload('a')).toEqual([expect.any(Number), 1])
    expect(await redis.ttl(keys.payload('a'))).toBe(-1)
    expect(await redis.smembers(keys.open)).toEqual(['a'])
    expect(await redis.zrange(keys.pending, '0', '-1')).toEqual(['a'])
    expect(await redis.hgetall(keys.flow)).toEqual({ acceptedPayloads: '2', acceptedBytes: '20', acceptedCost: '10' })
    expect(await redis.zscore(keys.shares, MEMBER)).toBe('10')
    expect(await redis.hgetall(keys.arrivals)).toEqual({ [`5/${MEMBER}/accepted`]: '2' })
    const busySince = await redis.hget(keys.busy, MEMBER)
    await acceptPayload('b')
    expect(await redis.hget(keys.busy, MEMBER)).toBe(busySince)
  })

  it('refuses a payload after its deadline, and leaves nothing of it', async () => {
    expect(await acceptPayload('a', 1)).toEqual([expect.any(Number), 0])
    expect(await redis.keys('*')).toEqual([])
  })

  it('counts nothing if the payload has expired', async () => {
    const payload = keys.payload('gone')
    await expect(accept.run(redis, acceptKeys(keys, payload, payload), argumentsOf('gone'))).rejects.toThrow('is gone')
    expect(await redis.keys('*')).toEqual([])
  })
})

describe('join.lua', () => {
  it('adds requests to an open payload', async () => {
    await acceptPayload('a')
    expect(await joinPayload('a')).toEqual([expect.any(Number), 1])
    expect(await redis.lrange(keys.joined('a'), 0, -1)).toEqual(['more bytes'])
    expect(await redis.hgetall(keys.flow)).toEqual({ acceptedPayloads: '4', acceptedBytes: '40', acceptedCost: '20' })
  })

  it.each([
    ['the payload was read', undefined, 2],
    ['its deadline has passed', 1, 0],
  ])('removes its bytes and counts nothing if %s', async (_, lateMs, outcome) => {
    await acceptPayload('a')
    if (outcome === 2) await redis.srem(keys.open, 'a')
    const before = await everything()
    expect(await joinPayload('a', lateMs)).toEqual([expect.any(Number), outcome])
    expect(await everything()).toEqual(before)
  })
})

describe('name.lua', () => {
  it('names a batch for all its jobs or for none', async () => {
    const [a, b, c] = (await takeJobs('a', 'b', 'c')) as [Taken, Taken, Taken]
    const none = new Map()
    expect(await twice(() => store.nameBatch('one', [a, b]))).toEqual([none, none])
    expect(await store.nameBatch('two', [b, c])).toEqual(new Map([['b', 'named']]))
    expect(await store.nameBatch('two', [c, { ...c, jobId: 'd' }])).toEqual(new Map([['d', 'stored']]))
    expect(await store.nameBatch('two', [{ ...c, token: 'of another' }])).toEqual(new Map([['c', 'lost']]))
    await redis.sadd(keys.open, 'c')
    expect(await store.nameBatch('two', [c])).toEqual(new Map([['c', 'lost']]))
    expect(await redis.hgetall(keys.batchOf)).toEqual({ a: 'one', b: 'one' })
    expect(Object.keys(await redis.hgetall(keys.batches))).toEqual(['one'])
  })
})

type Taken = Awaited<ReturnType<typeof takeJobs>>[number]

it('confirm-payload.lua returns whether a payload is as the holder of the lock has read it', async () => {
  await takeJobs('a')
  const { payload, lock, open, flow } = keys
  const confirm = (jobId: string, token: string) =>
    queueScript('confirm-payload').run(redis, [payload(jobId), lock('express', jobId), open, flow], [jobId, token])
  expect(await twice(() => confirm('a', 'lock of a'))).toEqual([1, 1])
  expect(await confirm('a', 'of another')).toBe(0)
  expect(await confirm('gone', 'lock of a')).toBe(0)
  await redis.sadd(open, 'a')
  expect(await confirm('a', 'lock of a')).toBe(0)
})

it('describe-batch.lua keeps the first formation of a batch, and returns it', async () => {
  await store.nameBatch('one', await takeJobs('a'))
  const batch = batchOf('one', 'a')
  expect(await twice(() => store.describeBatch(batch, formed(7)))).toEqual([formed(7), formed(7)])
  expect(await store.describeBatch(batch, formed(8))).toEqual(formed(7))
  const read = () => queueScript('describe-batch').run(redis, [keys.batches], ['one'])
  expect(await twice(read)).toEqual(Array(2).fill(expect.stringContaining('"decoder":7')))
  expect(await store.describeBatch(batchOf('finished'), formed(7))).toBeUndefined()
})

const move = (jobId: string, more: Partial<Move> = {}): Move => ({
  ...{ queue: 'dead-letters', jobId, payload: Buffer.from('letter'), frames: 1, shares: new Map([[MEMBER, 3]]) },
  ...more,
})

describe('finish.lua', () => {
  it('deletes the payloads of a batch, counts them and stores its moves, once', async () => {
    await store.nameBatch('one', await takeJobs('a', 'b'))
    await redis.rpush(keys.joined('a'), 'more')
    const acceptedAt = await redis.zscore(keys.pending, 'a')
    const shares = new Map([[MEMBER, 20]])
    const finish = () => store.finishBatch(batchOf('one', 'a', 'b'), { frames: 4, bytes: 40, shares }, [move('moved')])
    expect(await twice(finish)).toEqual([
      { isFirst: true, leftOut: [] },
      { isFirst: false, leftOut: [] },
    ])
    expect(await redis.hgetall(keys.flow)).toMatchObject({ acceptedCost: '20', donePayloads: '4', doneCost: '20' })
    const { payload, pending, flow, shares: sharesKey } = letters
    const left = [keys.flow, keys.arrivals, keys.lock('express', 'a'), keys.lock('express', 'b')]
    expect((await redis.keys('*')).sort()).toEqual([...left, payload('moved'), pending, flow, sharesKey].sort())
    expect(await redis.get(payload('moved'))).toBe('letter')
    expect(await redis.zscore(pending, 'moved')).toBe(acceptedAt)
  })

  it('finishes a job without a batch, once', async () => {
    await takeJobs('a', 'b')
    const finish = () => store.finishJob('a', DONE, [])
    expect((await twice(finish)).map(({ isFirst }) => isFirst)).toEqual([true, false])
    expect(await redis.exists(keys.payload('a'), keys.payload('b'))).toBe(1)
    expect(await redis.zscore(keys.shares, MEMBER)).toBe('10')
    expect(await redis.hexists(keys.busy, MEMBER)).toBe(1)
  })

  it('changes nothing when a job has left the batch, or a move has lost its pieces', async () => {
    await store.nameBatch('one', await takeJobs('a', 'b'))
    const before = await everything()
    expect((await store.finishBatch(batchOf('two', 'a'), DONE)).isFirst).toBe(false)
    const { payload, arriving, pending, flow, shares } = letters
    const movedKeys = [payload('m'), arriving('m'), pending, flow, shares]
    const names = [keys.batchOf, keys.batches, keys.flow, keys.shares, keys.pending, keys.busy]
    const args = ['one', 1, 'a', 2, 20, 10, 1, MEMBER, 10, 'm', '', 0, 1, 6, 3, 1, MEMBER, 3]
    const own = [keys.payload('a'), keys.joined('a')]
    expect(await queueScript('finish').run(redis, [...names, ...own, ...movedKeys], args)).toBe('gone')
    expect(await everything()).toEqual(before)
    await redis.hset(keys.batchOf, 'a', 'other')
    expect((await store.finishBatch(batchOf('one', 'a', 'b'), DONE)).isFirst).toBe(false)
  })

  it('leaves out a move whose queue is too far behind', async () => {
    await takeJobs('a')
    await redis.hset(letters.flow, { acceptedBytes: 100, doneBytes: 50 })
    const moves = [move('over', { backlogLimitBytes: 50 }), move('under', { backlogLimitBytes: 51 })]
    expect(await store.finishJob('a', DONE, moves)).toEqual({ isFirst: true, leftOut: [moves[0]] })
    expect(await redis.zrange(letters.pending, '0', '-1')).toEqual(['under'])
  })
})

it('split-batch.lua replaces a batch by others with the same jobs, once', async () => {
  await store.nameBatch('one', await takeJobs('a', 'b'))
  const split = () => store.splitBatch('one', [batchOf('left', 'a'), batchOf('right', 'b')])
  expect(await twice(split)).toEqual([true, false])
  expect(await redis.hgetall(keys.batchOf)).toEqual({ a: 'left', b: 'right' })
  expect(Object.keys(await redis.hgetall(keys.batches)).sort()).toEqual(['left', 'right'])
})

it('split-job.lua replaces a job of a batch by jobs in batches of their own, once', async () => {
  await store.nameBatch('one', await takeJobs('a', 'b'))
  const acceptedAt = await redis.zscore(keys.pending, 'a')
  const parts = ['a1', 'a2'].map(jobId => ({
    ...{ jobId, payload: Buffer.alloc(15, jobId), frames: 1, batchId: `batch of ${jobId}`, storedTables: [] },
  }))
  expect(await twice(() => store.splitJob(batchOf('one', 'a', 'b'), 20, parts))).toEqual([true, false])
  expect(await redis.hgetall(keys.batchOf)).toEqual({ b: 'one', a1: 'batch of a1', a2: 'batch of a2' })
  expect((await store.batch('one'))?.jobIds).toEqual(['b'])
  expect(await redis.exists(keys.payload('a'), keys.payload('a1'), keys.payload('a2'))).toBe(2)
  expect(await redis.zmscore(keys.pending, 'a', 'a1', 'a2')).toEqual([null, acceptedAt, acceptedAt])
  expect(await redis.hget(keys.flow, 'acceptedBytes')).toBe('50')
})
