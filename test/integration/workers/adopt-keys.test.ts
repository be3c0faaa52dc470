import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { encodePayload } from '../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { uploadKeys } from '../../../shared/queue/upload-keys.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { adoptPayloads, adoptUploads } from '../../../workers/queue/payloads/adopt-keys.ts'
import { RedisPayloadStore } from '../../../workers/queue/payloads/payload-store.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const logger = createLogger('test', 'silent')
const OLD = 'penstock:queue:spans'
const keys = queueKeys('spans')
let redis: Redis

beforeAll(async () => {
  redis = new Redis(`${services.redisUrl}/9`)
  // Other files that run on this server leave payloads in the database.
  await redis.flushdb()
})
afterAll(async () => {
  await redis.flushdb()
  redis.disconnect()
})

/** Writes a payload of one request as version 0.1 did. */
async function enqueueOld(body: string): Promise<string> {
  const jobId = randomUUID()
  const owner = { workspaceId: 'ws_1', surfaceId: 'srf_1', attributes: '', receivedAtMs: 1_000 }
  const frame = {
    ...owner,
    contentType: 'application/json',
    contentEncoding: 'identity',
    body: Buffer.from(body),
  } as const
  const payload = encodePayload([frame])
  await redis.set(`${OLD}:payload:${jobId}`, payload)
  await redis.hincrby(`${OLD}:flow`, 'acceptedPayloads', 1)
  await redis.hincrby(`${OLD}:flow`, 'acceptedBytes', payload.length)
  return jobId
}

it('gives payloads, named batches and counters of the old version the keys of this one', async () => {
  const [alone, first, second] = [await enqueueOld('alone'), await enqueueOld('first'), await enqueueOld('second')]
  await redis.hset(`${OLD}:batch-of`, first, 'batch', second, 'batch')
  await redis.hset(`${OLD}:batches`, 'batch', JSON.stringify({ jobIds: [first, second], storedTables: ['spans'] }))
  expect(await adoptPayloads({ redis, logger })).toBe(3)

  const store = new RedisPayloadStore(redis, 'spans')
  expect((await store.look(alone)).payload).not.toBeNull()
  expect(await store.look(first)).toEqual({ batchId: 'batch', payload: null })
  expect(await store.batch('batch')).toEqual({ jobIds: [first, second], storedTables: ['spans'] })
  expect((await redis.zrange(keys.pending, '0', '-1')).sort()).toEqual([alone, first, second].sort())
  expect(await redis.hget(keys.flow, 'acceptedPayloads')).toBe('3')
  expect(await redis.keys(`${OLD}:payload:*`)).toEqual([])

  expect(await adoptPayloads({ redis, logger })).toBe(0)
  expect(await redis.exists(`${OLD}:flow`)).toBe(0)
})

it('leaves a batch alone that a worker of the old version has finished', async () => {
  const jobId = await enqueueOld('finished')
  await redis.hset(`${OLD}:batch-of`, jobId, 'gone')
  expect(await adoptPayloads({ redis, logger })).toBe(0)
  await redis.del(`${OLD}:payload:${jobId}`, `${OLD}:batch-of`, `${OLD}:flow`)
})

it('renames the claims and completions of uploads', async () => {
  const release = { workspaceId: 'ws_1', surfaceId: 'srf_1', slug: 'rel_1' }
  const { parts, completion } = uploadKeys(release)
  const hash = parts('a.js').split(':').at(-1)
  await redis.hset(`penstock:upload:ws_1:srf_1:rel_1:parts:${hash}`, '0', 'claim')
  await redis.set('penstock:upload:ws_1:srf_1:rel_1:completion:abc', 'record')
  await adoptUploads(redis)
  expect(await redis.hgetall(parts('a.js'))).toEqual({ 0: 'claim' })
  expect(await redis.get(completion('abc'))).toBe('record')
  expect(await redis.keys('penstock:upload:*')).toEqual([])
})
