import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { MINUTE_MS } from '../../schemas/units.ts'
import { directoryScript } from '../../shared/directory/directory-script.ts'
import { digestBytes } from '../../shared/directory/maps/map-store.ts'
import { mapKeys, upkeepKeys } from '../../shared/directory/record.ts'

/** Greatest number of unused maps that wait in a workspace, about 13 MB of Redis. Further ones wait for a later run. */
export const UNUSED_MAPS_MAX = 100_000
/**
 * How long a map whose object is being deleted cannot be used, if the process that deletes it dies. A request that such a
 * process still sends later is refused by the store, whose limit for the age of a signature is 15 minutes.
 */
const DELETION_LIFETIME_MS = 20 * MINUTE_MS

const ADD_UNUSED = directoryScript('add-unused-maps')
const BEGIN_DELETION = directoryScript('begin-deletion')
const END_DELETION = directoryScript('end-deletion')

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
    await ADD_UNUSED.run(this.#redis, [this.#unused, this.#stored], [UNUSED_MAPS_MAX, ...digests])
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
    const begun = (await BEGIN_DELETION.run(this.#redis, keys, args)) as number[]
    return begun.map(i => sha256s[i] as string)
  }

  /** Returns whether no other process may have begun to use one of these maps since this one began to delete them. */
  async isDeleting(sha256s: readonly string[]): Promise<boolean> {
    const runs = await this.#redis.mget(this.#deletions(sha256s))
    return runs.every(run => run === this.#run)
  }

  /** Lets these maps be used again, which builds then upload. */
  async endDeletion(sha256s: readonly string[]): Promise<void> {
    await END_DELETION.run(this.#redis, this.#deletions(sha256s), [this.#run])
  }

  #deletions(sha256s: readonly string[]): string[] {
    return sha256s.map(sha256 => upkeepKeys.deletedMap(this.#workspaceId, sha256))
  }
}
