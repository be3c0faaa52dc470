import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { upkeepKeys } from './record.ts'

/** KEYS: lease. ARGV: holder, lifetime in ms. Returns whether the holder has the lease now. */
const TAKE = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`

/** KEYS: lease. ARGV: holder, lifetime in ms. Returns whether the holder still has the lease. */
const RENEW = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

/** KEYS: lease. ARGV: holder. */
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`

/**
 * Elects one of several processes. The holder keeps the lease by taking it again before `lifetimeMs` have passed. A process
 * that was suspended may believe that it has the lease, so its work must be safe beside that of the next holder.
 */
export class Lease {
  readonly #redis: Redis
  readonly #key: string
  readonly #lifetimeMs: number
  readonly #holder = randomUUID()

  constructor(redis: Redis, name: string, lifetimeMs: number) {
    this.#redis = redis
    this.#key = upkeepKeys.lease(name)
    this.#lifetimeMs = lifetimeMs
  }

  /** Takes the lease, or renews it. Returns whether this process has it. */
  async take(): Promise<boolean> {
    return (await this.#redis.eval(TAKE, 1, this.#key, this.#holder, this.#lifetimeMs)) === 1
  }

  /** Renews the lease unless it was lost: it has expired, or the directory was emptied. Returns whether this process has it. */
  async renew(): Promise<boolean> {
    return (await this.#redis.eval(RENEW, 1, this.#key, this.#holder, this.#lifetimeMs)) === 1
  }

  /** Leaves the lease to another process. */
  async release(): Promise<void> {
    await this.#redis.eval(RELEASE, 1, this.#key, this.#holder)
  }
}
