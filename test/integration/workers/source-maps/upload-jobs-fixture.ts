import { randomBytes, randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { afterAll } from 'vitest'
import type { QueueName } from '../../../../schemas/queues/names.ts'
import type { CompletionRecord, Verdict } from '../../../../schemas/queues/source-maps.ts'
import { MIB } from '../../../../schemas/units.ts'
import { Budget } from '../../../../shared/concurrency/budget.ts'
import { TokenBuckets } from '../../../../shared/concurrency/token-bucket.ts'
import { createReleaseStore } from '../../../../shared/directory/release-store.ts'
import { partKey, stagingKey } from '../../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../../shared/object-store/types.ts'
import { encodePayload } from '../../../../shared/queue/payload-frame.ts'
import { queueKeys } from '../../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../../shared/queue/redis.ts'
import { uploadKeys, verdictKey } from '../../../../shared/queue/upload-keys.ts'
import { RedisPayloadStore } from '../../../../workers/queue/payloads/payload-store.ts'
import { RepeatedFailures } from '../../../../workers/queue/repeated-failures.ts'
import { Suspects } from '../../../../workers/queue/suspects.ts'
import { REFUSED_READS } from '../../../../workers/source-maps/complete-release.ts'
import { storeCompletions } from '../../../../workers/source-maps/store-completions.ts'
import { storeSourceMaps } from '../../../../workers/source-maps/store-source-maps.ts'
import { digestOf, type FileEntry, mapOf, type NamedMap } from '../../../support/clients/release-client.ts'
import { queueOn } from '../../../support/queue-on.ts'
import { type FaultAt, faultAt } from '../../../support/services/fault-at.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/10`
/** Unique for this run, because other tests use the same object store. */
export const workspaceId = `ws_${randomBytes(6).toString('hex')}`
export const surfaceId = 'srf_1'
const logger = pino({ level: 'silent' })

export const redis = connectConsumer(redisUrl, logger)
await redis.flushdb()
export const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
export const releases = createReleaseStore(redis)

afterAll(() => {
  objects.close()
  redis.disconnect()
})

export const NEVER = faultAt(0, 'before')
export const keysOf = (slug: string) => uploadKeys({ workspaceId, surfaceId, slug })
export const placeOf = (slug: string, path: string) => ({ workspaceId, surfaceId, slug, path })
export const named = (path: string, bytes = 200): NamedMap => ({ path, bytes: mapOf(path + randomUUID(), bytes) })

export async function register(): Promise<string> {
  const slug = `rel_${randomBytes(13).toString('hex')}`
  const createdAt = new Date().toISOString()
  const known = { version: 1, commit: null, metadata: null } as const
  await releases.register({ ...known, slug, workspaceId, surfaceId, name: `1.0-${slug}`, createdAt })
  return slug
}

export async function enqueue(queue: QueueName, attributes: object, body: Buffer, of = surfaceId): Promise<string> {
  const jobId = randomUUID()
  const frame = { workspaceId, surfaceId: of, receivedAtMs: Date.now(), contentEncoding: 'identity' } as const
  const payload = encodePayload([
    { ...frame, contentType: 'application/json', attributes: JSON.stringify(attributes), body },
  ])
  const keys = queueKeys(queue)
  await redis.set(keys.payload(jobId), payload)
  await redis.set(keys.lock('express', jobId), 'token')
  return jobId
}

export const bodyOf = (files: readonly FileEntry[]) =>
  Buffer.from(JSON.stringify({ files, sourceFileCount: files.length }))

/** Accepts a completion as the edge does. */
export async function accept(slug: string, body: Buffer, sequence: number, of = surfaceId, version = 1) {
  const [attempt, digest] = [randomUUID(), digestOf(body)]
  const record = { version, attempt, sequence } satisfies CompletionRecord
  const recordKey = uploadKeys({ workspaceId, surfaceId: of, slug }).completion(digest)
  await redis.set(recordKey, JSON.stringify(record))
  const jobId = await enqueue('completions', { slug, attempt, digest }, body, of)
  return { jobId, attempt, recordKey }
}

export async function putParts(slug: string, { path, bytes }: NamedMap, partBytes = 50): Promise<void> {
  for (let at = 0; at < bytes.length; at += partBytes) {
    const part = at / partBytes
    const piece = bytes.subarray(at, at + partBytes)
    await redis.hset(keysOf(slug).parts(path), { [part]: `${digestOf(piece)}:${piece.length}`, [`stored:${part}`]: 1 })
    await objects.put(partKey(placeOf(slug, path), part), piece, { contentType: 'application/octet-stream' })
  }
}

export async function stage(slug: string, { path, bytes }: NamedMap): Promise<void> {
  const declared = { size: bytes.length, hash: digestOf(bytes) }
  const key = stagingKey(placeOf(slug, path), declared)
  await redis.hset(keysOf(slug).signed, path, JSON.stringify({ ...declared, stagingKey: key }))
  await objects.put(key, bytes, { contentType: 'application/json' })
}

/** The ids of uploads whose memory was freed. */
export const freed = new Set<string>()

const COUNTED = ['head', 'get', 'getStream', 'put', 'putStream', 'deleteMany'] as const

function depsOf(queue: QueueName, fault: FaultAt, store: Partial<ObjectStore> = {}, onFreed = () => {}) {
  const payloads = Object.assign(new RedisPayloadStore(queueOn(redis, queue)), { giveBack: onFreed })
  const wrappedRedis = fault.wrap(redis, ['evalsha', 'eval', 'get', 'hget', 'hmget', 'hset', 'expire'])
  return {
    redis: wrappedRedis,
    objects: fault.wrap({ ...objects, ...store }, COUNTED),
    releases: fault.wrap(releases, ['release', 'manifest', 'replaceManifest', 'storedMaps', 'addStoredMaps']),
    store: fault.wrap(payloads, ['look', 'holdsLocks', 'finishJob']),
    memory: new Budget(64 * MIB),
    suspects: new Suspects({ countAlone: async () => 1, forgetAlone: async () => {} }, logger),
    failures: new RepeatedFailures(),
    refusedReads: new TokenBuckets(REFUSED_READS),
    addJobs: async () => {},
    now: Date.now,
    logger,
    stopping: fault.signal,
  }
}

const taken = (jobId: string) => ({ jobId, lane: 'express', token: 'token', payloadBytes: 1_000, losses: 0 }) as const

export const runCompletion = (jobId: string, fault = NEVER, store: Partial<ObjectStore> = {}) =>
  storeCompletions(depsOf('completions', fault, store), taken(jobId))
export const runUpload = (jobId: string, fault = NEVER, store: Partial<ObjectStore> = {}) =>
  storeSourceMaps(
    depsOf('source-maps', fault, store, () => freed.add(jobId)),
    taken(jobId),
  )

export async function verdictOf(attempt: string): Promise<Verdict | undefined> {
  const text = await redis.get(verdictKey(attempt))
  return text === null ? undefined : JSON.parse(text)
}

export async function listed(prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const page of objects.list(prefix)) keys.push(...page.map(({ key }) => key))
  return keys
}

export const movedTo = (queue: QueueName, jobId: string) => redis.getBuffer(queueKeys(queue).payload(jobId))
