import { once } from 'node:events'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import { Budget } from '../../../shared/concurrency/budget.ts'
import { decodePayload, encodePayload, PAYLOAD_HEADER_BYTES } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { DEFAULT_SCRUBBER } from '../../../shared/scrubbing/scrubber.ts'
import { ConfirmedScripts } from '../../../workers/queue/payloads/confirmed-scripts.ts'
import { type LockedJob, RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { RepeatedFailures } from '../../../workers/queue/repeated-failures.ts'
import { Suspects } from '../../../workers/queue/suspects.ts'
import { inspectChunk } from '../../../workers/replay/inspect-chunk.ts'
import { type StoreReplayDeps, storeReplay } from '../../../workers/replay/store-replay.ts'
import { exampleFrame } from '../../support/payloads/example-frame.ts'
import { queueOn } from '../../support/queue-on.ts'
import { type RedisPair, startRedisPair } from '../../support/redis-pair.ts'

const keys = queueKeys('replay')
const job: LockedJob = { jobId: 'job', lane: 'express', token: 'mine' }
const CHUNK = exampleFrame('{"type":2,"timestamp":5}', {
  attributes: JSON.stringify({ sessionId: 's', windowId: 'w', segmentId: '7', firstTs: 1, lastTs: 9 }),
})
let pair: RedisPair
let confirming: Redis

const requests = (...bodies: string[]): Buffer => encodePayload(bodies.map(body => exampleFrame(body)))

/** A payload as an edge stores it, whose job this worker has taken. Both servers have it. */
async function acceptPayload(): Promise<void> {
  await pair.primary.set(keys.payload('job'), requests('first'))
  await pair.primary.sadd(keys.open, 'job')
  await pair.primary.set(keys.lock('express', 'job'), 'mine')
  expect(await pair.primary.wait(1, 5_000)).toBe(1)
}

const storeOn = (redis: Redis) =>
  new RedisPayloadStore(queueOn(redis, 'replay'), undefined, new ConfirmedScripts(confirming, 1))

async function read(store: RedisPayloadStore): Promise<string[]> {
  const payload = await store.payload('job')
  return payload === null ? [] : decodePayload(payload).map(({ body }) => body.toString())
}

beforeEach(async () => {
  pair = await startRedisPair()
  confirming = connectProducer(pair.url, 5_000, pino({ level: 'silent' }))
  await acceptPayload()
})

afterEach(async () => {
  confirming.disconnect()
  await pair.stop()
})

/** Reads the payload on the primary, which the replica does not learn any more. */
async function readUnreplicated(): Promise<RedisPayloadStore> {
  const store = storeOn(pair.primary)
  pair.holdReplication()
  expect(await read(store)).toEqual(['first'])
  return store
}

/** Promotes the replica, which has the payload from before it was read, and lets a request join it there. */
async function promoteAndJoin(): Promise<void> {
  await pair.promote()
  const isBack = once(confirming, 'ready')
  confirming.disconnect(true)
  await isBack
  expect(await pair.replica.sismember(keys.open, 'job')).toBe(1)
  await pair.replica.rpush(keys.joined('job'), requests('joined').subarray(PAYLOAD_HEADER_BYTES))
}

it('a payload that is open again on a promoted replica is not named, and has its new requests when it is read again', async () => {
  await readUnreplicated()
  await promoteAndJoin()
  const after = storeOn(pair.replica)
  expect(await after.nameBatch('batch', [job])).toEqual(new Map([['job', 'lost']]))
  expect(await read(after)).toEqual(['first', 'joined'])
  expect(await after.nameBatch('batch', [job])).toEqual(new Map())
})

it('a payload is confirmed once replicas have it as it was read', async () => {
  const before = await readUnreplicated()
  const isBack = once(confirming, 'ready')
  await expect(before.untilReplicated(job)).rejects.toThrow('could not be confirmed')
  pair.resumeReplication()
  await isBack
  await before.untilReplicated(job)
  expect(await pair.replica.sismember(keys.open, 'job')).toBe(0)
})

it('no object of a replay chunk is stored before replicas have its payload as it was read', async () => {
  const logger = pino({ level: 'silent' })
  const store = storeOn(pair.primary)
  const stored: string[] = []
  const deps: StoreReplayDeps = {
    store,
    objects: {
      async putIfAbsent(key) {
        stored.push(key)
        return 'stored'
      },
      head: async () => undefined,
    },
    inspect: (body, encoding) => inspectChunk(body, encoding),
    scrubbing: { of: async () => DEFAULT_SCRUBBER },
    memory: new Budget(MIB),
    suspects: new Suspects(store, logger),
    failures: new RepeatedFailures(),
    addJobs: async () => {},
    logger,
    stopping: new AbortController().signal,
  }
  const taken = { ...job, payloadBytes: 1_000, losses: 0 }
  await pair.primary.set(keys.payload('job'), encodePayload([CHUNK]))
  pair.holdReplication()
  const isBack = once(confirming, 'ready')
  await expect(storeReplay(deps, taken)).rejects.toThrow('could not be confirmed')
  expect(stored).toEqual([])
  pair.resumeReplication()
  await isBack
  await storeReplay(deps, taken)
  expect(stored).toEqual([expect.stringContaining('/srf_1/s/w/7.jsonl.gz')])
})

it('a payload that is open again on a promoted replica is not confirmed', async () => {
  await readUnreplicated()
  await promoteAndJoin()
  const after = storeOn(pair.replica)
  await expect(after.untilReplicated(job)).rejects.toThrow('not as it was read')
  expect(await read(after)).toEqual(['first', 'joined'])
  await after.untilReplicated(job)
})

it('a payload is not confirmed to a worker that has lost its job, nor one that is stored', async () => {
  const store = storeOn(pair.primary)
  expect(await read(store)).toEqual(['first'])
  await expect(store.untilReplicated({ ...job, token: 'another' })).rejects.toThrow('lock')
  await store.finishJob('job', { frames: 1, bytes: 1, shares: new Map() })
  await expect(store.untilReplicated(job)).rejects.toThrow('not as it was read')
})
