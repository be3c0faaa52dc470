import type { Redis } from 'ioredis'
import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue, QueueName } from '../../schemas/queues/names.ts'
import { MIB } from '../../schemas/units.ts'
import { queueKeys } from '../../shared/queue/queue.ts'
import type { QueueList, RedisQueue } from '../../shared/queue/queues.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { RedisMemory } from '../../shared/runtime/redis-memory.ts'
import { type QueueCounters, QueueShares, type QueueSharesDeps, type RefusalReason } from './queue-shares.ts'
import type { RedisClock } from './redis-clock.ts'
import { decodedLimit } from './request-cost.ts'

/** The collaborators of `Admission`. */
interface AdmissionDeps {
  /** Reaches what belongs to all queues of a name. */
  readonly redis: Redis
  /** The queues that edges write to or have written to. */
  readonly followed: QueueList
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

/** Bytes of the exceptions that wait for ClickHouse, 20 s of full load. A surface may have half of it. */
const MAX_EXCEPTIONS_COST = 256 * MIB
const FILL_EXCEPTIONS: ReadonlySet<QueueName> = new Set(['traces', 'logs'])
/** Bytes of statistics of spans that wait for ClickHouse, many minutes of full load. A surface may have half of it. */
const MAX_SPAN_STATS_COST = 128 * MIB

/** Prices change slowly, so only every fourth poll reads them. */
const POLLS_PER_PRICES = 4
const LISTED_PRICES = 1_000

/** The least delay while the memory of Redis is used up. Up to half more is added at random. */
const MEMORY_RETRY_S = 10

/**
 * Follows the shares of the surfaces in the queues of each name, which are sums over equal queues. Polls their counters in Redis,
 * so that deciding on a request costs no round trip.
 */
export class Admission {
  readonly #redis: Redis
  readonly #followed: QueueList
  readonly #logger: Logger
  readonly #clockOf: (server: string) => RedisClock
  /** The servers of queues, with what the last poll that succeeded has found. */
  readonly #servers = new Map<string, FollowedServer>()
  readonly #options: AdmissionOptions
  readonly #random: () => number
  readonly #queues: ReadonlyMap<AdmittedQueue, QueueShares>
  /** All that is polled: the queues, and those that their requests fill. */
  readonly #polled: readonly { readonly queue: QueueName; readonly shares: QueueShares }[]
  readonly #timer: NodeJS.Timeout
  #memoryShare = 0
  #polls = 0
  #polling = false

  constructor(deps: AdmissionDeps, options: AdmissionOptions) {
    const { queues, now = Date.now, random = Math.random, onRefused = () => {} } = deps
    this.#redis = deps.redis
    this.#followed = deps.followed
    this.#logger = deps.logger
    this.#clockOf = deps.clockOf
    this.#options = options
    this.#random = random
    const filled = (queue: QueueName, maxCost: number) =>
      new QueueShares({ queue, maxCost, decodedLimit: 0, now, random, onRefused: () => {} })
    const deadLetters = filled('dead-letters', MAX_DEAD_LETTER_COST)
    const exceptions = filled('exceptions', MAX_EXCEPTIONS_COST)
    const spanStats = filled('span-stats', MAX_SPAN_STATS_COST)
    const filledBy = (queue: AdmittedQueue): NonNullable<QueueSharesDeps['filled']> => [
      { shares: deadLetters, reason: 'dead_letters' },
      ...(FILL_EXCEPTIONS.has(queue) ? [{ shares: exceptions, reason: 'exceptions' } as const] : []),
      ...(queue === 'traces' ? [{ shares: spanStats, reason: 'span_stats' } as const] : []),
    ]
    const sharesOf = (queue: AdmittedQueue) =>
      new QueueShares({
        queue,
        maxCost: options.maxCost,
        decodedLimit: decodedLimit(queue),
        now,
        random,
        onRefused: reason => onRefused(queue, reason),
        filled: filledBy(queue),
      })
    this.#queues = new Map(queues.map(queue => [queue, sharesOf(queue)]))
    this.#polled = [
      ...[...this.#queues].map(([queue, shares]) => ({ queue, shares })),
      { queue: 'dead-letters', shares: deadLetters },
      { queue: 'exceptions', shares: exceptions },
      { queue: 'span-stats', shares: spanStats },
    ]
    this.#timer = setInterval(() => void this.#poll(), options.pollMs)
    this.#redis.on('ready', () => void this.#poll())
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
    if (this.#polling || this.#redis.status !== 'ready') return
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
    const polled = this.#polled.flatMap(({ queue: name, shares }) =>
      this.#followed.of(name).map(queue => ({ queue, shares })),
    )
    const places = Map.groupBy(polled, ({ queue }) => queue.server)
    const [prices, ...reads] = await Promise.all([
      withPrices ? this.#readPrices() : undefined,
      ...[...places.values()].map(own => this.#readServer(own).then(() => undefined, asError)),
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

  /** Reads the queues of one server. */
  async #readServer(places: readonly Place[]): Promise<void> {
    const { redis, server } = (places[0] as Place).queue
    const followed = this.#follow(server, redis)
    const [time, memory, ...counters] = await inOneWrite(redis, () =>
      Promise.all([
        redis.time(),
        redis.info('memory'),
        ...places.map(({ queue, shares }) => readCounters(queue, shares.listedSurfaces)),
      ]),
    )
    this.#clockOf(server).observe(Number(time[0]) * 1_000 + Number(time[1]) / 1_000)
    followed.memoryShare = followed.memory.usedShare(memory)
    followed.counters = new Map()
    for (const [i, { queue }] of places.entries()) {
      const others = followed.counters.get(queue.name) ?? []
      followed.counters.set(queue.name, [...others, counters[i] as Counters])
    }
  }

  #follow(server: string, redis: Redis): FollowedServer {
    let followed = this.#servers.get(server)
    if (followed === undefined) {
      followed = { memory: new RedisMemory(this.#logger, 'queues'), memoryShare: 0, counters: new Map() }
      this.#servers.set(server, followed)
      redis.on('close', () => this.#clockOf(server).reset())
    }
    return followed
  }

  async #readPrices(): Promise<ReadonlyMap<QueueName, readonly string[]>> {
    const read = this.#polled.map(async ({ queue }) => {
      const { prices } = queueKeys(queue)
      return [queue, await this.#redis.zrevrange(prices, 0, LISTED_PRICES - 1, 'WITHSCORES')] as const
    })
    return new Map(await Promise.all(read))
  }
}

const asError = (error: unknown) => error as Error

type Counters = Omit<QueueCounters, 'prices'>

/** A queue that is polled. */
interface Place {
  readonly queue: RedisQueue
  readonly shares: QueueShares
}

/** State of a server as its last poll has found it. */
interface FollowedServer {
  readonly memory: RedisMemory
  memoryShare: number
  counters: Map<QueueName, readonly Counters[]>
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

async function readCounters({ redis, keys }: RedisQueue, listedSurfaces: number): Promise<Counters> {
  const [flow, shares] = await Promise.all([
    redis.hgetall(keys.flow),
    redis.zrevrange(keys.shares, 0, listedSurfaces - 1, 'WITHSCORES'),
  ])
  return { flow, shares }
}

/** Returns the sum of the counters of equal queues. */
function sumOf(counters: readonly Counters[]): Counters {
  if (counters.length === 1) return counters[0] as Counters
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
