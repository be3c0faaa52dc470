import type { ClickHouseSettings } from '@clickhouse/client'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { ClickHouseClient, ClickHouseConnection, ShardServer, Shards } from '../client.ts'
import type { BoundQuery, Reads } from '../read-connection.ts'
import { Replica } from './replica.ts'
import { activeShards, MAPS_KNOWN_FOR_MS, type ShardMap, usedMaps } from './shard-maps.ts'
import { shardOfTrace } from './shards-of-rows.ts'

/** How to reach a cluster. */
interface ClusterConnection extends Omit<ClickHouseConnection, 'url' | 'database'> {
  /** Addresses by shard and replica. */
  readonly addresses: readonly (readonly string[])[]
  /** Database of the tables on each shard. */
  readonly database: string
  readonly isReplicated: boolean
}

/** Time between two checks of each replica. */
const CHECK_EVERY_MS = 5_000

/** Settings of reads of all shards. A shard that does not answer is an error, because a short result would look complete. */
const ALL_SHARDS_SETTINGS: ClickHouseSettings = {
  // A table in a subquery is read from all shards, not only from that of the query.
  distributed_product_mode: 'global',
  skip_unavailable_shards: 0,
}

/**
 * The servers of a cluster. Each is checked every five seconds. One that does not answer is avoided until it does; while none of
 * a shard answers, work on the shard fails as it does without a cluster while the server is unavailable.
 */
class Cluster implements Shards, Reads {
  readonly #shards: readonly (readonly Replica[])[]
  readonly database: string
  readonly #timer: NodeJS.Timeout
  #turn = Math.floor(Math.random() * 1024)
  #checking: Promise<void> | undefined

  constructor({ addresses, database, isReplicated, settings = {}, ...connection }: ClusterConnection) {
    this.database = database
    const quorum: ClickHouseSettings = isReplicated ? { insert_quorum: 'auto', insert_quorum_parallel: 1 } : {}
    this.#shards = addresses.map((replicas, shard) =>
      replicas.map(url => new Replica(shard, { ...connection, url, database, settings: { ...settings, ...quorum } })),
    )
    this.#timer = setInterval(() => void this.#check(), CHECK_EVERY_MS).unref()
  }

  get count(): number {
    return this.#shards.length
  }

  get servers(): readonly ShardServer[] {
    return this.#shards.flat()
  }

  get fault(): string | undefined {
    const used = Math.max(0, ...usedMaps(this.#maps()))
    if (used > this.count) {
      return `CLICKHOUSE_URL has ${this.count} shards, but rows are divided between ${used}: name the addresses of all`
    }
    return this.#shards.flat().find(({ fault }) => fault !== undefined)?.fault
  }

  async active(): Promise<number> {
    let active = activeShards(this.#maps(), Date.now())
    if (active === undefined || this.fault !== undefined) {
      await this.#check()
      active = activeShards(this.#maps(), Date.now())
    }
    if (this.fault !== undefined) throw new TransientError(this.fault)
    if (active === undefined) {
      throw new TransientError('the shards of ClickHouse do not answer, or are not migrated: run npm run migrate')
    }
    return active
  }

  async onShard<T>(shard: number, work: (client: ClickHouseClient) => Promise<T>): Promise<T> {
    const replicas = this.#shards[shard]
    if (replicas === undefined) throw new TransientError(`CLICKHOUSE_URL has no address of the shard ${shard + 1}`)
    return this.#withReplica(replicas, replica => work(replica.client))
  }

  async read(query: BoundQuery, onChunk: (chunk: Buffer) => void): Promise<string> {
    const shard = query.trace && (await this.#shardOf(query.trace))
    if (shard !== undefined)
      return this.#readFrom(this.#shards[shard] ?? [], ({ client }) => client.reads, query, onChunk)
    const all = { ...query, settings: { ...ALL_SHARDS_SETTINGS, ...query.settings } }
    return this.#readFrom(this.#shards.flat(), ({ allShards }) => allShards, all, onChunk)
  }

  /** Returns whether a replica answers. */
  async ping(): Promise<{ success: true } | { success: false; error: Error }> {
    await this.#check()
    const isAnswered = this.#shards.every(replicas => replicas.some(({ isUp }) => isUp))
    return isAnswered ? { success: true } : { success: false, error: new Error('a shard does not answer') }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#shards.flat().map(replica => replica.close()))
  }

  /** Returns the only shard with rows of a trace, or undefined if there may be several. */
  async #shardOf(trace: NonNullable<BoundQuery['trace']>): Promise<number | undefined> {
    const isRecent = ({ checkedAtMs }: Replica) => Date.now() - checkedAtMs < MAPS_KNOWN_FOR_MS
    if (!this.#shards.flat().some(isRecent)) await this.#check()
    if (!this.#shards.flat().some(isRecent) || this.fault !== undefined) return undefined
    const [first, ...others] = new Set(usedMaps(this.#maps()).map(shards => shardOfTrace(trace, shards)))
    return others.length === 0 ? first : undefined
  }

  async #readFrom(
    replicas: readonly Replica[],
    reads: (replica: Replica) => Reads,
    query: BoundQuery,
    onChunk: (chunk: Buffer) => void,
  ): Promise<string> {
    let hasBegun = false
    const pass = (chunk: Buffer) => {
      hasBegun = true
      onChunk(chunk)
    }
    const isOver = () => hasBegun || query.signal.aborted
    return this.#withReplica(replicas, replica => reads(replica).read(query, pass), isOver)
  }

  /** Runs work with a replica, and once more with another if the first is at fault and `isOver` does not say otherwise. */
  async #withReplica<T>(
    replicas: readonly Replica[],
    work: (replica: Replica) => Promise<T>,
    isOver: () => boolean = () => false,
  ): Promise<T> {
    const [first, second] = this.#inOrder(replicas)
    if (first === undefined) throw new TransientError('the shard has no address')
    try {
      return await work(first)
    } catch (error) {
      if (isOver() || !first.isAtFault(error) || second === undefined || !second.isUsable) throw error
    }
    try {
      return await work(second)
    } catch (error) {
      second.isAtFault(error)
      throw error
    }
  }

  /** Returns the replicas in turn, the usable ones first. */
  #inOrder(replicas: readonly Replica[]): Replica[] {
    const first = this.#turn++ % Math.max(replicas.length, 1)
    const inTurn = [...replicas.slice(first), ...replicas.slice(0, first)]
    return [...inTurn.filter(({ isUsable }) => isUsable), ...inTurn.filter(({ isUsable }) => !isUsable)]
  }

  #maps(): readonly (readonly ShardMap[])[] {
    return this.#shards.map(replicas => replicas.flatMap(({ maps }) => maps))
  }

  #check(): Promise<void> {
    this.#checking ??= Promise.all(this.#shards.flat().map(replica => replica.check()))
      .then(() => undefined)
      .finally(() => {
        this.#checking = undefined
      })
    return this.#checking
  }
}

/** Creates the client of a cluster. */
export function createClusterClient(connection: ClusterConnection): ClickHouseClient {
  const cluster = new Cluster(connection)
  const own = { reads: cluster, shards: cluster, ping: () => cluster.ping(), close: () => cluster.close() }
  const refuse = () => {
    throw new TypeError('this concerns single shards of ClickHouse: use onEachShard or shards.onShard')
  }
  return { ...own, command: refuse, exec: refuse, insert: refuse, query: refuse } as unknown as ClickHouseClient
}
