import { CLICKHOUSE_SHARDS_MAX } from '../../shared/runtime/config.ts'
import type { SpanBytes, SpanCpu } from './cost-model.ts'
import type { Inputs } from './inputs.ts'

/** Primaries and what one of them has. */
export interface RedisPlan {
  readonly nodes: number
  readonly partitions: number
  readonly coresOfNode: number
  readonly memoryOfNode: number
  /** Memory of all primaries that the backlog needs, with the share that is kept free. */
  readonly memoryNeeded: number
  readonly diskOfNode: number
  readonly enlarged: readonly string[]
  readonly exceeded: readonly string[]
}

/** Shards and what one of their nodes has. */
export interface ClickHousePlan {
  readonly shards: number
  readonly coresOfNode: number
  readonly memoryOfNode: number
  readonly rowsPerInsert: number
  /** Inserts a second into each shard, as a mean of the day: the least CLICKHOUSE_INSERTS_PER_SECOND. */
  readonly insertsPerSecond: number
  /** Memory of the deduplication windows in each node. */
  readonly windowMemory: number
  /** Data of one copy, and the room on the disks of all shards that it needs. */
  readonly stored: number
  readonly diskNeeded: number
  readonly enlarged: readonly string[]
  readonly exceeded: readonly string[]
}

/** A load with what a span of it costs. */
export interface SpanDemand {
  readonly meanRate: number
  readonly peakRate: number
  /** Cost of a span in a batch whose inserts cost nothing. */
  readonly cpu: SpanCpu
  readonly bytes: SpanBytes
  readonly clickhouseCpuPerInsert: number
  readonly fullBatchRows: number
  readonly spansPerPayload: number
}

const GB = 1e9
const BITS_OF_GBIT = 1e9
/** Share of the maxmemory of Redis above which edges accept nothing (REDIS_MAX_MEMORY_SHARE). */
export const REDIS_MEMORY_SHARE = 0.7
/** Disk of Redis over its maxmemory: the log, its rewrite, and what is written meanwhile. */
const REDIS_DISK_FACTOR = 3
/** Memory of the windows for each insert a second (docs/performance.md#deduplication-windows). */
const WINDOW_GB_PER_INSERT = 0.49
/** Share of the memory of a ClickHouse node for windows. Merges and queries need the rest. */
export const WINDOW_MEMORY_SHARE = 0.5
/** Part of the cores of a ClickHouse node that inserts leave to rows at least. */
const LEAST_SHARE_FOR_ROWS = 0.2
/** Share of a disk that is in use. Merges need the rest. */
const DISK_SHARE = 0.7
/**
 * Inserts a second of a partition that up to four workers consume. Each further one adds an insert
 * (docs/decisions/028-insert-pace.md).
 */
const PACED_INSERTS_PER_SECOND = 4
/** Bounds of one installation: partitions of a queue, CLICKHOUSE_INSERTS_PER_SECOND. */
const MOST_PARTITIONS = 64
const MOST_INSERTS_PER_SECOND = 100
/** How often the size of a node is doubled where more nodes would not help. */
const MOST_DOUBLINGS = 4
/** Sizes of nodes that are chosen unless the inputs state one. A load that needs more than the largest has more nodes of it. */
const REDIS_CORES = [0.5, 1, 2]
const REDIS_MEMORY = [1, 2, 4, 8, 16, 32]
const CLICKHOUSE_CORES = [1, 2, 4, 8, 16]
const CLICKHOUSE_GB_OF_CORE = 4
/** Stored data over the memory of a ClickHouse node at most, as ClickHouse's own guide for sizing recommends. */
const DATA_OF_MEMORY = 100
/** Cores of a Redis node over what its commands need: its log is written and rewritten beside them. */
const REDIS_CORES_FACTOR = 2

/** Finds the smallest number of primaries that have the cores, the memory and the network. */
export function planRedis({ peakRate, cpu, bytes }: SpanDemand, inputs: Inputs): RedisPlan {
  const goal = inputs.utilisation
  const backlog = (peakRate * bytes.redisReceived * inputs['backlog-minutes'] * 60) / GB
  const memoryNeeded = backlog / REDIS_MEMORY_SHARE
  const memory = inputs['redis-memory'] || sizeOf(REDIS_MEMORY, size => memoryNeeded <= size)
  // A node has a partition of its own at least, so more nodes than partitions would be idle.
  const memoryOfNode = doubled(memory, size => memoryNeeded <= size * MOST_PARTITIONS)
  const coresNeeded = (peakRate * cpu.redis) / goal
  const nodes = Math.max(
    whole(coresNeeded),
    whole(memoryNeeded / memoryOfNode),
    whole((peakRate * redisNodeBytes(bytes, inputs) * 8) / (inputs.network * BITS_OF_GBIT * goal)),
  )
  const partitions = nodes === 1 ? 1 : Math.max(nodes, Math.min(nodes * inputs['partitions-per-node'], MOST_PARTITIONS))
  return {
    nodes,
    partitions,
    coresOfNode:
      inputs['redis-cores'] || sizeOf(REDIS_CORES, size => (coresNeeded / nodes) * REDIS_CORES_FACTOR <= size),
    memoryOfNode,
    memoryNeeded,
    diskOfNode: memoryOfNode * REDIS_DISK_FACTOR,
    enlarged:
      memoryOfNode > memory
        ? [
            `Redis nodes have ${memoryOfNode} GB: the backlog needs ${memoryNeeded.toFixed(0)} GB in at most ${MOST_PARTITIONS} nodes`,
          ]
        : [],
    exceeded: exceeded(['partitions', partitions, MOST_PARTITIONS]),
  }
}

/** Returns the bytes of a span on the busier direction of a primary's network: it sends to workers and to replicas. */
export const redisNodeBytes = ({ redisReceived, redisSent }: SpanBytes, inputs: Inputs) =>
  Math.max(redisReceived, redisSent + redisReceived * inputs['redis-replicas'])

/** Finds the smallest number of shards whose nodes have the cores, the disk and the network. */
export function planClickHouse(
  demand: SpanDemand,
  inputs: Inputs,
  partitions: number,
  workers: number,
): ClickHousePlan {
  const { meanRate, peakRate, cpu, bytes, clickhouseCpuPerInsert } = demand
  const goal = inputs.utilisation
  const paced = partitions * Math.max(PACED_INSERTS_PER_SECOND, workers / partitions)
  // A payload is not divided.
  const rowsAt = (rate: number) => Math.max(demand.spansPerPayload, Math.min(demand.fullBatchRows, rate / paced))
  const rowsPerInsert = rowsAt(peakRate)
  const insertsPerSecond = meanRate / rowsAt(meanRate)
  const windowMemory = insertsPerSecond * WINDOW_GB_PER_INSERT
  const stored = (bytes.stored * inputs['spans-per-day'] * inputs['retention-days']) / GB
  const diskNeeded = stored / DISK_SHARE
  // Each batch has rows for each shard, so each shard has all inserts. More shards do not make them fewer.
  const coresForInserts = (peakRate / rowsPerInsert) * clickhouseCpuPerInsert
  const coresForRows = (cores: number) => cores * goal - coresForInserts
  const leastForRows = (cores: number) => cores * goal * LEAST_SHARE_FOR_ROWS
  const isEnough = (cores: number) => coresForRows(cores) >= leastForRows(cores)
  const shardsFor = (cores: number) =>
    whole((peakRate * cpu.clickhouse) / Math.max(coresForRows(cores), leastForRows(cores)))
  const holdsAll = (cores: number) =>
    shardsFor(cores) === 1 && stored <= cores * CLICKHOUSE_GB_OF_CORE * DATA_OF_MEMORY && isEnough(cores)
  const setCores = inputs['clickhouse-cores'] || sizeOf(CLICKHOUSE_CORES, holdsAll)
  const coresOfNode = doubled(setCores, isEnough)
  const setMemory = inputs['clickhouse-memory'] || coresOfNode * CLICKHOUSE_GB_OF_CORE
  const memoryOfNode = doubled(setMemory, memory => memory * WINDOW_MEMORY_SHARE >= windowMemory)
  const shards = Math.max(
    shardsFor(coresOfNode),
    whole(diskNeeded / inputs['clickhouse-disk']),
    whole((peakRate * bytes.clickhouseReceived * 8) / (inputs.network * BITS_OF_GBIT * goal)),
  )
  const enlarged = [
    ...(coresOfNode > setCores
      ? [
          `ClickHouse nodes have ${coresOfNode} cores: the inserts alone need ${coresForInserts.toFixed(1)} in each shard`,
        ]
      : []),
    ...(memoryOfNode > setMemory
      ? [
          `ClickHouse nodes have ${memoryOfNode} GB: the deduplication windows alone need ${windowMemory.toFixed(0)} GB in each`,
        ]
      : []),
  ]
  return {
    shards,
    coresOfNode,
    memoryOfNode,
    rowsPerInsert,
    insertsPerSecond,
    windowMemory,
    stored,
    diskNeeded,
    enlarged,
    exceeded: exceeded(
      ['shards', shards, CLICKHOUSE_SHARDS_MAX],
      ['inserts a second into each shard (CLICKHOUSE_INSERTS_PER_SECOND)', insertsPerSecond, MOST_INSERTS_PER_SECOND],
      [
        'cores of a ClickHouse node for inserts alone',
        coresForInserts,
        coresOfNode * goal * (1 - LEAST_SHARE_FOR_ROWS),
      ],
    ),
  }
}

/** Returns the bounds that are exceeded, as text. */
function exceeded(...bounds: readonly (readonly [name: string, needed: number, most: number])[]): string[] {
  return bounds
    .filter(([, needed, most]) => needed > most)
    .map(([name, needed, most]) => `${boundText(needed)} ${name}, of at most ${boundText(most)}`)
}

/** Returns a number that stays different from the one that it exceeds. */
const boundText = (number: number) => (number < 10 ? number.toFixed(2).replace(/\.00$/, '') : String(Math.ceil(number)))

/** Returns a number of whole nodes. The tolerance is for quotients that are whole but for a rounding. */
const whole = (count: number) => Math.max(1, Math.ceil(count - 1e-9))

/** Returns the smallest size that is enough, or the largest. */
function sizeOf(sizes: readonly number[], isEnough: (size: number) => boolean): number {
  return sizes.find(isEnough) ?? sizes.at(-1) ?? 1
}

/** Doubles a size until it is enough, a few times at most. */
function doubled(size: number, isEnough: (size: number) => boolean): number {
  let enough = size
  for (let i = 0; i < MOST_DOUBLINGS && !isEnough(enough); i++) enough *= 2
  return enough
}
