import { Cluster, type Redis } from 'ioredis'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type ClusterAddress, parseRedisTarget, type RedisTarget } from '../../runtime/redis/redis-group.ts'
import { type ConnectTo, connectConsumer, connectProducer, SILENCE_MS, withErrorLog } from '../redis.ts'
import { accessOf, ClusterMap } from './cluster-map.ts'
import { hashSlot } from './hash-slot.ts'
import { queueTag } from './queue-tag.ts'

/** The servers of the queues, as `REDIS_URL` names them: one Redis, or a Redis Cluster. */
export class QueueServers {
  readonly #address: RedisTarget
  #map: ClusterMap | undefined

  constructor(redisUrl: string) {
    const address = parseRedisTarget(redisUrl)
    if (address === undefined) throw new RangeError('REDIS_URL is not an address of Redis')
    this.#address = address
  }

  /** Whether all partitions are in one Redis, which one connection reaches. */
  get isOne(): boolean {
    return this.#address.kind !== 'cluster'
  }

  /** The first partition. A cluster has no partition 0, whose queues are in different slots. */
  get first(): number {
    return this.isOne ? 0 : 1
  }

  /** The partitions that always exist. The undivided queues of a cluster move payloads to the first two. */
  get always(): readonly number[] {
    return this.isOne ? [0] : [1, 2]
  }

  /** Returns the name of the server of a partition: the slot of a cluster. */
  serverOf(queue: QueueName, partition: number): string {
    return this.isOne ? '0' : String(hashSlot(queueTag(queue, partition)))
  }

  /** Returns the partition to which payloads of a finished job move. It is on the same server, and in the same slot. */
  movesTo(queue: QueueName, partition: number): number {
    if (this.isOne || partition > 0) return partition
    return queue === 'completions' ? 2 : 1
  }

  /** Returns the address of a server. */
  addressOf(server: string): ConnectTo {
    const address = this.#address
    if (address.kind !== 'cluster') return address
    this.#map ??= new ClusterMap(address)
    return { kind: 'slot', map: this.#map, slot: Number(server) }
  }

  /** Connects a producer to the one server, or to all masters of a cluster. */
  connectProducer(commandTimeoutMs: number, logger: Logger): Redis {
    if (this.#address.kind !== 'cluster') return connectProducer(this.#address, commandTimeoutMs, logger)
    // Commands that were sent are not sent again: none of these is set.
    const retries = { retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, retryDelayOnTryAgain: 100 }
    return connectCluster(
      this.#address,
      logger,
      { enableOfflineQueue: false, ...retries },
      { commandTimeout: commandTimeoutMs },
    )
  }

  /** Connects a consumer to the one server, or to all masters of a cluster. */
  connectConsumer(logger: Logger): Redis {
    if (this.#address.kind !== 'cluster') return connectConsumer(this.#address, logger)
    return connectCluster(this.#address, logger, { maxRedirections: 100 }, { maxRetriesPerRequest: null })
  }
}

/** Its callers use commands with keys of one slot, and events and states that a cluster has as well. */
function connectCluster(
  { nodes, ...access }: ClusterAddress,
  logger: Logger,
  options: object,
  redisOptions: object,
): Redis {
  const cluster = new Cluster([...nodes], {
    ...options,
    redisOptions: { ...redisOptions, ...accessOf(access), connectTimeout: 2_000, socketTimeout: SILENCE_MS },
    clusterRetryStrategy: attempt => Math.min(100 * attempt, 1_000),
    slotsRefreshTimeout: 2_000,
  })
  return withErrorLog(cluster, logger) as unknown as Redis
}
