import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue, QueueName } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import type { PartitionFeed } from '../../shared/queue/registry/queue-feed.ts'
import type { QueueLinks } from '../../shared/queue/registry/queue-links.ts'
import { partitionsOf } from '../../shared/queue/registry/queue-tag.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { RedisMemory } from '../../shared/runtime/redis-memory.ts'
import { type QueueCounters, QueueShares, type RefusalReason } from './queue-shares.ts'
import type { RedisClock } from './redis-clock.ts'
import { decodedLimit } from './request-cost.ts'

/** The collaborators of `Admission`. */
interface AdmissionDeps {
  readonly links: QueueLinks
  /** The partitions that edges write to or have written to. */
  readonly partitions: Pick<PartitionFeed, 'current'>
  readonly queues: readonly AdmittedQueue[]
  readonly logger: Logger
  /** Returns the clock of a server, which every poll corrects. */
  readonly clockOf: (server: string) => RedisClock
  /** Called for each refused request. */
  readonly onRefused?: (queue: AdmittedQueue, reason: RefusalReason) => void
  readonly now?: () => number
  readonly random?: () => number
}

/** The bounds above which requests are refused. */
interface AdmissionOptions {
  /** The most cost of the requests of a queue that are accepted and not finished. */
  readonly maxCost: number
  /** The largest share of Redis' maxmemory that may be used. */
  readonly maxMemoryShare: number
  /** The time between two reads of the counters. */
  readonly pollMs: number
}

/** Cost of the dead letters that wait for the object store. A surface may have half of it. */
const MAX_DEAD_LETTER_COST = 256 * MIB

/** Prices change slowly, so only every fourth poll reads them. */
const POLLS_PER_PRICES = 4
const LISTED_PRICES = 1_000

/** The least delay while the memory of Redis is used up. Up to half more is added at random. */
const MEMORY_RETRY_S = 10

/**
 * Follows the shares of the surfaces in all queues, each of which is the sum of its partitions. Polls their counters in Redis,
 * so that deciding on a request costs no round trip.
 */
export class Admission {
  readonly #links: QueueLinks
  readonly #partitions: Pick<PartitionFeed, 'current'>
  readonly #logger: Logger
  readonly #clockOf: (server: string) => RedisClock
  /** The servers of partitions, with what the last poll that succeeded has found. */
  readonly #servers = new Map<string, FollowedServer>()
  readonly #options: AdmissionOptions
  readonly #random: () => number
  readonly #queues: ReadonlyMap<AdmittedQueue, QueueShares>
  /** All that is polled: the queues, and the dead letters. */
  readonly #polled: readonly { readonly queue: QueueName; readonly shares: QueueShares }[]
  readonly #timer: NodeJS.Timeout
  #memoryShare = 0
  #polls = 0
  #polling = false

  constructor(deps: AdmissionDeps, options: AdmissionOptions) {
    const { queues, now = Date.now, random = Math.random, onRefused = () => {} } = deps
    this.#links = deps.links
    this.#partitions = deps.partitions
    this.#logger = deps.logger
    this.#clockOf = deps.clockOf
    this.#options = options
    this.#random = random
    const deadLetters = new QueueShares({
      queue: 'dead-letters',
      maxCost: MAX_DEAD_LETTER_COST,
      decodedLimit: 0,
      now,
      random,
      onRefused: () => {},
    })
    const sharesOf = (queue: AdmittedQueue) =>
      new QueueShares({
        queue,
        maxCost: options.maxCost,
        decodedLimit: decodedLimit(queue),
        now,
        random,
        onRefused: reason => onRefused(queue, reason),
        deadLetters,
      })
    this.#queues = new Map(queues.map(queue => [queue, sharesOf(queue)]))
    this.#polled = [
      ...[...this.#queues].map(([queue, shares]) => ({ queue, shares })),
      { queue: 'dead-letters', shares: deadLetters },
    ]
    this.#timer = setInterval(() => void this.#poll(), options.pollMs)
    this.#links.common.on('ready', () => void this.#poll())
    void this.#poll()
  }

  /** Returns the shares of a queue. */
  sharesOf(queue: AdmittedQueue): QueueShares {
    const shares = this.#queues.get(queue)
    if (shares === undefined) throw new RangeError(`queue ${queue} is not followed`)
    return shares
  }

  /** Returns INGEST_BACKPRESSURE when Redis is nearly full, or undefined. For requests that write to Redis without a queue. */
  refuseForMemory(): Problem | undefined {
    if (this.#memoryShare < this.#options.maxMemoryShare) return undefined
    const message = 'the store of the queues is nearly full; retry after the delay'
    return {
      code: 'INGEST_BACKPRESSURE',
      message,
      retryAfterSeconds: Math.ceil(MEMORY_RETRY_S * (1 + this.#random() / 2)),
    }
  }

  /** Stops polling. */
  stop(): void {
    clearInterval(this.#timer)
  }

  async #poll(): Promise<void> {
    if (this.#polling || this.#links.common.status !== 'ready') return
    this.#polling = true
    try {
      await this.#read(this.#polls++ % POLLS_PER_PRICES === 0)
    } catch (error) {
      this.#logger.debug(errorFields(error), 'the counters of the queues could not be read')
    } finally {
      this.#polling = false
    }
  }

  /** Reads all servers. The counters of one that does not answer stay as they were read before. */
  async #read(withPrices: boolean): Promise<void> {
    for (const { shares } of this.#polled) shares.beginPoll()
    const places = this.#placesByServer()
    const [prices, ...reads] = await Promise.all([
      withPrices ? this.#readPrices() : undefined,
      ...[...places].map(([server, own]) => this.#readServer(server, own).then(() => undefined, asError)),
    ])
    if (reads.every(failure => failure !== undefined)) throw reads[0]
    const servers = [...places.keys()].map(server => this.#servers.get(server))
    this.#memoryShare = Math.max(0, ...servers.map(server => server?.memoryShare ?? 0))
    const memoryFree = 1 - this.#memoryShare / this.#options.maxMemoryShare
    for (const { queue, shares } of this.#polled) {
      const counters = sumOf(servers.flatMap(server => server?.counters.get(queue) ?? []))
      shares.endPoll({ ...counters, prices: prices?.get(queue) }, memoryFree)
    }
  }

  #placesByServer(): ReadonlyMap<string, readonly Place[]> {
    const places = this.#polled.flatMap(({ queue, shares }) =>
      partitionsOf(queue, this.#partitions.current).map(partition => ({ queue, partition, shares })),
    )
    return Map.groupBy(places, ({ queue, partition }) => this.#links.servers.serverOf(queue, partition))
  }

  async #readServer(server: string, places: readonly Place[]): Promise<void> {
    const followed = this.#serverOf(server)
    const { redis } = followed
    const [time, memory, ...counters] = await inOneWrite(redis, () =>
      Promise.all([
        redis.time(),
        redis.info('memory'),
        ...places.map(({ queue, partition, shares }) => readCounters(redis, queue, partition, shares.listedSurfaces)),
      ]),
    )
    this.#clockOf(server).observe(Number(time[0]) * 1_000 + Number(time[1]) / 1_000)
    followed.memoryShare = followed.memory.usedShare(memory)
    followed.counters = new Map()
    for (const [i, { queue }] of places.entries()) {
      followed.counters.set(queue, [...(followed.counters.get(queue) ?? []), counters[i] as PartitionCounters])
    }
  }

  #serverOf(server: string): FollowedServer {
    let followed = this.#servers.get(server)
    if (followed === undefined) {
      const redis = this.#links.to(server)
      followed = { redis, memory: new RedisMemory(this.#logger, 'queues'), memoryShare: 0, counters: new Map() }
      this.#servers.set(server, followed)
      redis.on('close', () => this.#clockOf(server).reset())
    }
    return followed
  }

  async #readPrices(): Promise<ReadonlyMap<QueueName, readonly string[]>> {
    const read = this.#polled.map(async ({ queue }) => {
      const { prices } = queueKeys(queue)
      return [queue, await this.#links.common.zrevrange(prices, 0, LISTED_PRICES - 1, 'WITHSCORES')] as const
    })
    return new Map(await Promise.all(read))
  }
}

const asError = (error: unknown) => error as Error

type PartitionCounters = Omit<QueueCounters, 'prices'>

/** A partition that is polled. */
interface Place {
  readonly queue: QueueName
  readonly partition: number
  readonly shares: QueueShares
}

/** A server, and what its last poll has found. */
interface FollowedServer {
  readonly redis: Redis
  readonly memory: RedisMemory
  memoryShare: number
  counters: Map<QueueName, readonly PartitionCounters[]>
}

/** Sends the commands of a function in one write to the socket. Each would be one otherwise, and a read of Redis. */
function inOneWrite<T>({ stream }: Redis, send: () => Promise<T>): Promise<T> {
  stream?.cork()
  try {
    return send()
  } finally {
    stream?.uncork()
  }
}

async function readCounters(
  redis: Redis,
  queue: QueueName,
  partition: number,
  listedSurfaces: number,
): Promise<PartitionCounters> {
  const keys = queueKeys(queue, partition)
  const [flow, shares] = await Promise.all([
    redis.hgetall(keys.flow),
    redis.zrevrange(keys.shares, 0, listedSurfaces - 1, 'WITHSCORES'),
  ])
  return { flow, shares }
}

/** Returns the sum of the counters of all partitions of a queue. */
function sumOf(counters: readonly PartitionCounters[]): PartitionCounters {
  if (counters.length === 1) return counters[0] as PartitionCounters
  const flow: Record<string, string> = {}
  const costs = new Map<string, number>()
  for (const counter of counters) {
    for (const [name, value] of Object.entries(counter.flow))
      flow[name] = String(Number(flow[name] ?? 0) + Number(value))
    for (let i = 0; i + 1 < counter.shares.length; i += 2) {
      const member = counter.shares[i] as string
      costs.set(member, (costs.get(member) ?? 0) + Number(counter.shares[i + 1]))
    }
  }
  const shares = [...costs].sort(([, a], [, b]) => b - a).flatMap(([member, cost]) => [member, String(cost)])
  return { flow, shares }
}
