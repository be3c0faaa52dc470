import type { Redis } from 'ioredis'
import { DAY_S } from '../../schemas/units.ts'

/** Days for which the usage of keys is kept. */
const KEY_USAGE_DAYS = 62

/** Requests of one key on one day. */
export interface KeyUsage {
  readonly keyId: string
  readonly requests: number
  /** Sum of their lengths as they were announced. */
  readonly bytes: number
}

/** What an edge has counted of a key since it was written last. */
export interface KeyCount {
  readonly workspaceId: string
  readonly keyId: string
  requests: number
  bytes: number
}

/** Returns the key of the usage of a workspace on a day, in days since 1970. */
const usageKey = (workspaceId: string, day: number) => `penstock:{key-usage}:${workspaceId}:${day}`

/** Adds counts to the usage of a day. */
export async function addKeyUsage(redis: Redis, day: number, counts: readonly Readonly<KeyCount>[]): Promise<void> {
  const pipeline = redis.pipeline()
  for (const { workspaceId, keyId, requests, bytes } of counts) {
    const key = usageKey(workspaceId, day)
    pipeline.hincrby(key, `${keyId}/requests`, requests)
    if (bytes > 0) pipeline.hincrby(key, `${keyId}/bytes`, bytes)
    pipeline.expire(key, KEY_USAGE_DAYS * DAY_S)
  }
  const failed = (await pipeline.exec())?.find(([error]) => error !== null)
  if (failed) throw failed[0]
}

/** Returns the usage of all keys of a workspace on a day, in the order of their ids. A workspace has a bounded number of keys. */
export async function readKeyUsage(redis: Redis, workspaceId: string, day: number): Promise<KeyUsage[]> {
  const counts = new Map<string, { requests: number; bytes: number }>()
  for (const [field, value] of Object.entries(await redis.hgetall(usageKey(workspaceId, day)))) {
    const [keyId = '', name] = field.split('/')
    const count = counts.get(keyId) ?? { requests: 0, bytes: 0 }
    if (name === 'requests') count.requests = Number(value)
    if (name === 'bytes') count.bytes = Number(value)
    counts.set(keyId, count)
  }
  return [...counts].map(([keyId, count]) => ({ keyId, ...count })).sort((a, b) => (a.keyId < b.keyId ? -1 : 1))
}
