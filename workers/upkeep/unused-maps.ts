import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { MINUTE_MS } from '../../schemas/units.ts'
import { digestBytes } from '../../shared/directory/maps/map-store.ts'
import { mapKeys, upkeepKeys } from '../../shared/directory/record.ts'

/** Greatest number of unused maps that wait in a workspace, about 13 MB of Redis. Further ones wait for a later run. */
export const UNUSED_MAPS_MAX = 100_000
/**
 * How long a map whose object is being deleted cannot be used, if the process that deletes it dies. A request that such a
 * process still sends later is refused by the store, whose limit for the age of a signature is 15 minutes.
 */
const DELETION_LIFETIME_MS = 20 * MINUTE_MS

/** Lua that defines `now()`, in Unix ms of Redis: the clocks of two workers may differ by more than maps are kept. */
const NOW = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`

/**
 * KEYS: unused maps, stored maps. ARGV: maximum, digests. A map that is unused is not known as stored any more, so that
 * builds upload it again.
 */
const ADD_UNUSED = `
${NOW}
local since = now()
local room = tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1])
for i = 2, #ARGV do
  if room <= 0 then return end
  room = room - redis.call('ZADD', KEYS[1], 'NX', since, ARGV[i])
  redis.call('SREM', KEYS[2], ARGV[i])
end
`

/**
 * KEYS: unused maps, stored maps, then the deletion of each map. ARGV: age in ms, id of the run, lifetime, then the digest of
 * each map. Begins the deletion of those that have been unused for this time, and returns their positions.
 */
const BEGIN_DELETION = `
${NOW}
local begun = {}
local latest = now() - ARGV[1]
for i = 4, #ARGV do
  local since = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if since and tonumber(since) <= latest then
    redis.call('ZREM', KEYS[1], ARGV[i])
    if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
      redis.call('SET', KEYS[i - 1], ARGV[2], 'PX', ARGV[3])
      table.insert(begun, i - 4)
    end
  end
end
return begun
`

/** KEYS: the deletion of each map. ARGV: id of the run. Another run may have begun to delete the same map since. */
const END_DELETION = `
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then redis.call('DEL', key) end
end
`

/** The unused maps of a workspace (docs/decisions/026-unused-maps.md). One page of at most 1,000 maps at a time. */
export class UnusedMaps {
  readonly #redis: Redis
  readonly #workspaceId: string
  readonly #unused: string
  readonly #stored: string
  readonly #run = randomUUID()

  constructor(redis: Redis, workspaceId: string) {
    this.#redis = redis
    this.#workspaceId = workspaceId
    this.#unused = mapKeys.unused(workspaceId)
    this.#stored = mapKeys.stored(workspaceId)
  }

  /** Returns since when each of these maps is known to be unused, in Unix ms. */
  async since(sha256s: readonly string[]): Promise<(number | undefined)[]> {
    if (sha256s.length === 0) return []
    const scores = await this.#redis.zmscore(this.#unused, ...sha256s.map(digestBytes))
    return scores.map(score => (score === null ? undefined : Number(score)))
  }

  /** Adds maps, as far as there is room for them. Those that are in the list keep their time. */
  async add(sha256s: readonly string[]): Promise<void> {
    if (sha256s.length === 0) return
    const digests = sha256s.map(digestBytes)
    await this.#redis.eval(ADD_UNUSED, 2, this.#unused, this.#stored, UNUSED_MAPS_MAX, ...digests)
  }

  async remove(sha256s: readonly string[]): Promise<void> {
    if (sha256s.length > 0) await this.#redis.zrem(this.#unused, ...sha256s.map(digestBytes))
  }

  /** Forgets the maps that have been in the list since before this time. Their objects do not exist any more. */
  async forget(beforeMs: number): Promise<void> {
    await this.#redis.zremrangebyscore(this.#unused, '-inf', beforeMs)
  }

  /** Begins to delete those of these maps that have been unused for this time or longer, and returns them. */
  async beginDeletion(sha256s: readonly string[], unusedForMs: number): Promise<string[]> {
    if (sha256s.length === 0) return []
    const keys = [this.#unused, this.#stored, ...this.#deletions(sha256s)]
    const args = [unusedForMs, this.#run, DELETION_LIFETIME_MS, ...sha256s.map(digestBytes)]
    const begun = (await this.#redis.eval(BEGIN_DELETION, keys.length, ...keys, ...args)) as number[]
    return begun.map(i => sha256s[i] as string)
  }

  /** Returns whether no other process may have begun to use one of these maps since this one began to delete them. */
  async isDeleting(sha256s: readonly string[]): Promise<boolean> {
    const runs = await this.#redis.mget(this.#deletions(sha256s))
    return runs.every(run => run === this.#run)
  }

  /** Lets these maps be used again, which builds then upload. */
  async endDeletion(sha256s: readonly string[]): Promise<void> {
    await this.#redis.eval(END_DELETION, sha256s.length, ...this.#deletions(sha256s), this.#run)
  }

  #deletions(sha256s: readonly string[]): string[] {
    return sha256s.map(sha256 => upkeepKeys.deletedMap(this.#workspaceId, sha256))
  }
}
