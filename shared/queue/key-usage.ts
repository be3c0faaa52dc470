import type { Redis } from 'ioredis'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { DAY_MS, DAY_S } from '../../schemas/units.ts'
import { errorFields } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'

/** Days for which the usage of keys is kept. */
const KEY_USAGE_DAYS = 62

/** Requests of one key on one day. */
export interface KeyUsage {
  readonly keyId: string
  readonly requests: number
  /** Sum of their lengths as they were announced. */
  readonly bytes: number
}

/** The last use of one key, and its requests of today. */
export interface KeyUse {
  /** Null if it was not used in the days for which usage is kept. */
  readonly lastUsedAtMs: number | null
  readonly requestsToday: number
}

/** The requests of a key that a process has counted since it wrote them last. */
export interface KeyCount {
  readonly workspaceId: string
  readonly keyId: string
  /** The usage of a workspace lists public keys only. Requests with others are kept for the lists of keys. */
  readonly isPublic: boolean
  requests: number
  bytes: number
}

/** Returns the key of the usage of a workspace on a day, in days since 1970. */
const usageKey = (workspaceId: string, day: number) => `penstock:{key-usage}:${workspaceId}:${day}`
const dayOf = (ms: number) => Math.floor(ms / DAY_MS)

/** Adds counts to the usage of the day of `nowMs`, which becomes the time of the last use of their keys. */
async function addKeyUsage(redis: Redis, nowMs: number, counts: readonly Readonly<KeyCount>[]): Promise<void> {
  const pipeline = redis.pipeline()
  for (const { workspaceId, keyId, isPublic, requests, bytes } of counts) {
    const key = usageKey(workspaceId, dayOf(nowMs))
    pipeline.hincrby(key, `${keyId}/${isPublic ? 'requests' : 'uses'}`, requests)
    pipeline.hset(key, `${keyId}/at`, nowMs)
    if (bytes > 0) pipeline.hincrby(key, `${keyId}/bytes`, bytes)
    pipeline.expire(key, KEY_USAGE_DAYS * DAY_S)
  }
  const failed = (await pipeline.exec())?.find(([error]) => error !== null)
  if (failed) throw failed[0]
}

/** Returns the usage of the public keys of a workspace on a day, by their ids. A workspace has a bounded number of keys. */
export async function readKeyUsage(redis: Redis, workspaceId: string, day: number): Promise<KeyUsage[]> {
  const counts = new Map<string, { requests: number; bytes: number }>()
  for (const [field, value] of Object.entries(await redis.hgetall(usageKey(workspaceId, day)))) {
    const [keyId = '', name] = field.split('/')
    if (name !== 'requests' && name !== 'bytes') continue
    const count = counts.get(keyId) ?? { requests: 0, bytes: 0 }
    count[name] = Number(value)
    counts.set(keyId, count)
  }
  return [...counts].map(([keyId, count]) => ({ keyId, ...count })).sort((a, b) => (a.keyId < b.keyId ? -1 : 1))
}

/** Returns the use of these keys of a workspace, a page of a list, in their order. Reads a field of each key for each kept day. */
export async function readKeyUse(
  redis: Redis,
  workspaceId: string,
  keyIds: readonly string[],
  nowMs: number,
): Promise<KeyUse[]> {
  if (keyIds.length === 0) return []
  const today = dayOf(nowMs)
  const days = Array.from({ length: KEY_USAGE_DAYS }, (_, i) => usageKey(workspaceId, today - i))
  const times = keyIds.map(id => `${id}/at`)
  const [requests, uses, ...usedAt] = await Promise.all([
    ...['requests', 'uses'].map(name =>
      redis.hmget(usageKey(workspaceId, today), ...keyIds.map(id => `${id}/${name}`)),
    ),
    ...days.map(day => redis.hmget(day, ...times)),
  ])
  return keyIds.map((_, i) => {
    const last = usedAt.map(ofDay => ofDay[i]).find(time => typeof time === 'string')
    return { lastUsedAtMs: last ? Number(last) : null, requestsToday: Number(requests?.[i] ?? uses?.[i] ?? 0) }
  })
}

const FLUSH_MS = 5_000
/** Number of flushes in a row after which a count that stays zero is removed. Cached keys are looked up again before. */
const IDLE_FLUSHES = 12
/** The most keys that a process counts. */
const MAX_KEYS = 50_000
/** Counts that are sent together. */
const COUNTS_AT_ONCE = 500

/** A key of a surface, or an API key, which has no kind. */
type CountedKey = Pick<SurfaceKey, 'id' | 'workspaceId'> & Partial<Pick<SurfaceKey, 'kind'>>

interface Counted {
  readonly count: KeyCount
  idleFlushes: number
}

/**
 * Counts the requests of keys. Who caches a key keeps its count, so that a request costs two additions. They are added to Redis
 * every five seconds: a process that is killed loses those, and a lost reply makes the numbers too small.
 */
export class KeyCounts {
  readonly #redis: Redis
  readonly #logger: Logger
  readonly #now: () => number
  readonly #counts = new Map<string, Counted>()
  readonly #timer: NodeJS.Timeout

  constructor(redis: Redis, logger: Logger, now: () => number = Date.now) {
    this.#redis = redis
    this.#logger = logger
    this.#now = now
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Returns the count of a key. The edge calls it when a key is looked up, not for each request. */
  of({ id, workspaceId, kind }: CountedKey): KeyCount {
    const known = this.#counts.get(id)
    if (known !== undefined) {
      known.idleFlushes = 0
      return known.count
    }
    const count = { workspaceId, keyId: id, isPublic: kind === 'public', requests: 0, bytes: 0 }
    if (this.#counts.size < MAX_KEYS) this.#counts.set(id, { count, idleFlushes: 0 })
    return count
  }

  /** Adds what was counted to Redis. While Redis is unavailable, it is kept. */
  async flush(): Promise<void> {
    if (this.#redis.status !== 'ready') return
    const taken: KeyCount[] = []
    for (const [id, counted] of this.#counts) {
      const { count } = counted
      if (count.requests > 0) {
        taken.push({ ...count })
        count.requests = 0
        count.bytes = 0
        counted.idleFlushes = 0
      } else if (++counted.idleFlushes > IDLE_FLUSHES) this.#counts.delete(id)
    }
    const now = this.#now()
    try {
      for (let at = 0; at < taken.length; at += COUNTS_AT_ONCE) {
        await addKeyUsage(this.#redis, now, taken.slice(at, at + COUNTS_AT_ONCE))
      }
    } catch (error) {
      this.#logger.debug(errorFields(error), 'some counts of keys are lost')
    }
  }

  /** Adds the last counts to Redis. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
