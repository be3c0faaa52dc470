import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { directoryScript } from './directory-script.ts'
import { upkeepKeys } from './record.ts'

const TAKE = directoryScript('take-lease')
const RENEW = directoryScript('renew-lease')
const RELEASE = directoryScript('release-lease')

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
    return (await TAKE.run(this.#redis, [this.#key], [this.#holder, this.#lifetimeMs])) === 1
  }

  /** Renews the lease unless it was lost: it has expired, or the directory was emptied. Returns whether this process has it. */
  async renew(): Promise<boolean> {
    return (await RENEW.run(this.#redis, [this.#key], [this.#holder, this.#lifetimeMs])) === 1
  }

  /** Leaves the lease to another process. */
  async release(): Promise<void> {
    await RELEASE.run(this.#redis, [this.#key], [this.#holder])
  }
}
