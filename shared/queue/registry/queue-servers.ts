import { Cluster, type Redis } from 'ioredis'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type ClusterAddress, parseRedisTargets, type RedisTarget } from '../../runtime/redis/redis-group.ts'
import { type ConnectTo, connectConsumer, connectProducer, SILENCE_MS, withErrorLog } from '../redis.ts'
import { accessOf, ClusterMap } from './cluster-map.ts'
import { hashSlot } from './hash-slot.ts'
import { queueTag } from './queue-tag.ts'
import type { RegisteredPartition } from './registry.ts'

/** The servers of the queues, as `REDIS_URL` names them: one Redis, several of them, or a Redis Cluster. */
export class QueueServers {
  readonly #addresses: readonly RedisTarget[]
  readonly #cluster: { readonly address: ClusterAddress; readonly map: ClusterMap } | undefined
  /** Servers of the partitions that are registered. */
  readonly #assigned = new Map<number, number>()

  constructor(redisUrl: string) {
    const addresses = parseRedisTargets(redisUrl)
    const [only] = addresses ?? []
    if (addresses === undefined || only === undefined) throw new RangeError('REDIS_URL is not an address of Redis')
    this.#addresses = addresses
    this.#cluster = only.kind === 'cluster' ? { address: only, map: new ClusterMap(only) } : undefined
  }

  /** Number of servers that new partitions are spread over. A cluster spreads its slots itself. */
  get count(): number {
    return this.#addresses.length
  }

  /** Whether all partitions are in one Redis, which one connection reaches. */
  get isOne(): boolean {
    return this.#addresses.length === 1 && this.#cluster === undefined
  }

  /** The first partition. A cluster has no partition 0, whose queues are in different slots. */
  get first(): number {
    return this.#cluster === undefined ? 0 : 1
  }

  /** The partitions that always exist. The undivided queues of a cluster move payloads to the first two. */
  get always(): readonly number[] {
    return this.#cluster === undefined ? [0] : [1, 2]
  }

  /** Takes the servers of registered partitions. */
  learn(partitions: readonly Pick<RegisteredPartition, 'partition' | 'server'>[]): void {
    for (const { partition, server } of partitions) this.#assigned.set(partition, server)
  }

  /** Returns the name of the server of a partition: its position in REDIS_URL, or the slot of a cluster. */
  serverOf(queue: QueueName, partition: number): string {
    if (this.#cluster !== undefined) return String(hashSlot(queueTag(queue, partition)))
    return String(this.#assigned.get(partition) ?? 0)
  }

  /** Returns the partition to which payloads of a finished job move. It is on the same server, and in the same slot. */
  movesTo(queue: QueueName, partition: number): number {
    if (this.#cluster === undefined || partition > 0) return partition
    return queue === 'completions' ? 2 : 1
  }

  /** Returns the address of a server. Throws if REDIS_URL does not name it. */
  addressOf(server: string): ConnectTo {
    if (this.#cluster !== undefined) return { kind: 'slot', map: this.#cluster.map, slot: Number(server) }
    const address = this.#addresses[Number(server)]
    if (address === undefined || address.kind === 'cluster') {
      throw new RangeError(`REDIS_URL names ${this.count} servers and a partition is on number ${server}: only append`)
    }
    return address
  }

  /** Connects a producer to the first server, or to all masters of a cluster. */
  connectProducer(commandTimeoutMs: number, logger: Logger): Redis {
    if (this.#cluster === undefined) return connectProducer(this.addressOf('0'), commandTimeoutMs, logger)
    // Commands that were sent are not sent again: none of these is set.
    const retries = { retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, retryDelayOnTryAgain: 100 }
    return this.#connectCluster(logger, { enableOfflineQueue: false, ...retries }, { commandTimeout: commandTimeoutMs })
  }

  /** Connects a consumer to the first server, or to all masters of a cluster. */
  connectConsumer(logger: Logger): Redis {
    if (this.#cluster === undefined) return connectConsumer(this.addressOf('0'), logger)
    return this.#connectCluster(logger, { maxRedirections: 100 }, { maxRetriesPerRequest: null })
  }

  /** Its callers use commands with keys of one slot, and events and states that a cluster has as well. */
  #connectCluster(logger: Logger, options: object, redisOptions: object): Redis {
    const { nodes, ...access } = (this.#cluster as { readonly address: ClusterAddress }).address
    const cluster = new Cluster([...nodes], {
      ...options,
      redisOptions: { ...redisOptions, ...accessOf(access), connectTimeout: 2_000, socketTimeout: SILENCE_MS },
      clusterRetryStrategy: attempt => Math.min(100 * attempt, 1_000),
      slotsRefreshTimeout: 2_000,
    })
    return withErrorLog(cluster, logger) as unknown as Redis
  }
}
