import type { Redis } from 'ioredis'
import { QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { withDeadline } from '../runtime/lifecycle.ts'
import { parseRedisTarget, type RedisTarget } from '../runtime/redis/redis-group.ts'
import { type QueueKeys, queueKeys } from './queue.ts'
import type { ConnectTo } from './redis.ts'
import { ClusterMap } from './registry/cluster-map.ts'
import { hashSlot } from './registry/hash-slot.ts'
import { isDivided, queueTag } from './registry/queue-tag.ts'
import { forgetPartition, readRegistry } from './registry/registry.ts'

/** How long a read waits for a connection that it opens. */
const OPENED_WITHIN_MS = 2_000

/** The name of the server that `REDIS_URL` names, or of all masters of its cluster. */
export const QUEUES_SERVER = 'queues'

/**
 * One of the queues that have the same name and are equal. All its keys are in one Redis, and in one slot of a Redis Cluster.
 * A process has one object for each, so that they can be compared and be keys of a map.
 */
export interface RedisQueue {
  readonly name: QueueName
  /** The hash tag of its keys, which no other queue has. */
  readonly tag: string
  readonly keys: QueueKeys
  readonly redis: Redis
  /** Names what `redis` is connected to. */
  readonly server: string
  /** The address of this server, for connections of another kind. */
  readonly address: ConnectTo
  /** Returns the queue of another name into which jobs of this one move payloads. Both are in the same slot. */
  beside(name: QueueName): RedisQueue
}

/** Some of the queues, in the order of their names. */
export interface QueueList {
  readonly all: readonly RedisQueue[]
  /** Returns the equal queues of a name. */
  of(name: QueueName): readonly RedisQueue[]
}

/** The queues that may contain something, and the time of the registry at which they were read. */
export interface QueuesRead extends QueueList {
  readonly readAtMs: number
  readonly numbers: readonly number[]
}

/**
 * The queues as one process reaches them: one queue of each name in one Redis, or several equal ones in a Redis Cluster. There is
 * one connection to each server, opened when its first queue is used. The registry numbers the equal queues, which only it and
 * this class know.
 */
export class Queues {
  /** Reaches what belongs to the installation, or to all queues of a name. */
  readonly common: Redis
  readonly #address: RedisTarget
  readonly #map: ClusterMap | undefined
  readonly #connect: (to: ConnectTo, server: string) => Redis
  readonly #opened = new Map<string, Redis>()
  readonly #known = new Map<string, RedisQueue>()

  /** `connect` opens a connection of the kind that this process uses. */
  constructor(redisUrl: string, connect: (to: ConnectTo, server: string) => Redis) {
    const address = parseRedisTarget(redisUrl)
    if (address === undefined) throw new RangeError('REDIS_URL is not an address of Redis')
    this.#address = address
    this.#map = address.kind === 'cluster' ? new ClusterMap(address) : undefined
    this.#connect = connect
    this.common = this.connectionTo(QUEUES_SERVER)
  }

  /** Whether one connection reaches all queues. */
  get areOnOneServer(): boolean {
    return this.#map === undefined
  }

  /** The first number. A cluster has no number 0, whose queues are in different slots. */
  get first(): number {
    return this.areOnOneServer ? 0 : 1
  }

  /** Returns the queue of this name that every installation of this kind has. Letters are replayed into it. */
  firstOf(name: QueueName): RedisQueue {
    return this.at(name, this.first)
  }

  /** Returns the queue of this name and number. A name that is not divided has one queue, whatever the number. */
  at(name: QueueName, number: number): RedisQueue {
    const own = isDivided(name) ? number : 0
    const tag = queueTag(name, own)
    const known = this.#known.get(tag)
    if (known !== undefined) return known
    const server = this.#map === undefined ? QUEUES_SERVER : String(hashSlot(tag))
    const connection = () => this.connectionTo(server)
    const queue: RedisQueue = {
      ...{ name, tag, keys: queueKeys(name, tag), server, address: this.#addressOf(server) },
      get redis() {
        return connection()
      },
      beside: other => (other === name ? queue : this.at(other, this.serverNumberOf(name, own))),
    }
    this.#known.set(tag, queue)
    return queue
  }

  /** Returns the queues of these numbers. */
  ofNumbers(numbers: readonly number[]): QueueList {
    const lists = new Map(QUEUES.map(name => [name, [...new Set(numbers.map(number => this.at(name, number)))]]))
    return { all: [...lists.values()].flat(), of: name => lists.get(name) ?? [] }
  }

  /** Returns the connection to a server. */
  connectionTo(server: string): Redis {
    let redis = this.#opened.get(server)
    if (redis === undefined) {
      redis = this.#connect(this.#addressOf(server), server)
      this.#opened.set(server, redis)
    }
    return redis
  }

  /**
   * Reads which queues may contain something. A number is registered before anything is accepted in its queues, and not before
   * the clock of their server has passed the time of the registration. So what is read has all that any server had accepted
   * before `readAtMs`.
   */
  async read(): Promise<QueuesRead> {
    const { readAtMs, partitions } = await readRegistry(this.common)
    // The queues of a cluster that are not divided move payloads to the first two.
    const always = this.areOnOneServer ? [0] : [1, 2]
    const numbers = [...new Set([...always, ...partitions.map(({ partition }) => partition)])]
    const list = this.ofNumbers(numbers)
    const before = this.#opened.size
    const connections = new Set(list.all.map(({ redis }) => redis))
    if (this.#opened.size > before) await Promise.all([...connections].map(untilReady))
    return { ...list, readAtMs, numbers }
  }

  /**
   * Forgets the numbers that no edge has registered for an hour and whose queues are empty. Returns them. Nothing is accepted
   * in them any more, and what moves keeps its number. So they are empty if they are once no payload is in any of them, nor a
   * count of requests that is not copied. A number may be registered again at any time.
   */
  async retire(): Promise<readonly number[]> {
    const { partitions } = await readRegistry(this.common)
    const retired: number[] = []
    for (const registered of partitions) {
      const { partition, isUsed } = registered
      if (isUsed || partition === this.first || !(await this.#areEmpty(partition))) continue
      if (await forgetPartition(this.common, registered)) retired.push(partition)
    }
    return retired
  }

  /** Closes the connections. */
  close(): void {
    for (const redis of this.#opened.values()) redis.disconnect()
  }

  #addressOf(server: string): ConnectTo {
    if (this.#map === undefined || server === QUEUES_SERVER) return this.#address
    return { kind: 'slot', map: this.#map, slot: Number(server) }
  }

  /** Looks twice, because letters that are stored move on and back among their two queues. */
  async #areEmpty(number: number): Promise<boolean> {
    const divided = this.ofNumbers([number]).all.filter(({ name }) => isDivided(name))
    for (let look = 0; look < 2; look++) {
      for (const { redis, keys } of divided) if ((await redis.exists(keys.pending, keys.arrivals)) > 0) return false
    }
    return true
  }

  /** Returns the number of the divided queues that are on the same server as this queue. */
  serverNumberOf(name: QueueName, number: number): number {
    if (this.areOnOneServer || number > 0) return number
    return name === 'completions' ? 2 : 1
  }
}

/** Waits for a connection that was just opened. The next command fails or waits if it is still not ready. */
async function untilReady(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return
  const ready = new Promise<void>(resolve => {
    redis.once('ready', resolve)
  })
  await withDeadline(ready, OPENED_WITHIN_MS, 'redis is not connected').catch(() => {})
}
