import { DAY_S } from '../../schemas/units.ts'
import { type BatchShape, type CostModel, ENDLESS_BATCH, type SpanBytes, type SpanCpu } from './cost-model.ts'
import type { Inputs } from './inputs.ts'
import { type ClickHousePlan, planClickHouse, planRedis, type RedisPlan, type SpanDemand } from './plan-stores.ts'

/** Processes and servers for a load, and what each of them has to do. Rates are of spans a second, memory and disks in GB. */
export interface Plan {
  readonly meanRate: number
  readonly peakRate: number
  /** CPU seconds and bytes of a span in this plan, on cores of its speed. */
  readonly cpu: SpanCpu
  readonly bytes: SpanBytes
  readonly edges: number
  readonly workers: number
  /** Cores of one of them: a part of one, where the fewest processes do not need a whole one. */
  readonly edgeCores: number
  readonly workerCores: number
  readonly redis: RedisPlan
  readonly clickhouse: ClickHousePlan
  /** GB in the bucket. */
  readonly objects: number
  /** Bytes a second at the peak, by hop. */
  readonly traffic: Readonly<Record<Hop, number>>
  /** Nodes that are larger than the inputs say, with the reason. */
  readonly enlarged: readonly string[]
  /** Bounds of one installation that the load exceeds. */
  readonly exceeded: readonly string[]
}

/** Way of the bytes from one place to the next. */
type Hop =
  | 'clients to edges'
  | 'edges to Redis'
  | 'Redis to replicas'
  | 'Redis to workers'
  | 'workers to ClickHouse'
  | 'ClickHouse to replicas'

const MOST_ROUNDS = 1_000
/** Cores of a process. It uses one at most. Those of workers, which also parse source maps, are larger. */
const EDGE_SIZES = [0.25, 0.5, 1]
const WORKER_SIZES = [0.5, 1]
/**
 * Bytes of an insert on the network over those that ClickHouse reads. Workers compress inserts to other machines, and the costs
 * are measured on one (docs/performance.md: 507 bytes of a realistic span, and 55).
 */
const COMPRESSED_SHARE = 55 / 507

/** Sizes everything for the peak, so that no resource is in use for more than its share. */
export function makePlan(model: CostModel, inputs: Inputs): Plan {
  const load = {
    spansPerPayload: inputs['spans-per-payload'],
    realisticShare: inputs['realistic-share'],
    gzipShare: inputs['gzip-share'],
  }
  const meanRate = inputs['spans-per-day'] / DAY_S
  const peakRate = meanRate * inputs['peak-factor']
  const goal = inputs.utilisation
  const cpuAt = (batch: BatchShape) => ofSpeed(model.cpu(load, batch), inputs['core-speed'])
  const demand: SpanDemand = {
    meanRate,
    peakRate,
    bytes: compressed(scaledBytes(model.bytes(load), inputs, model.bytes({ ...load, gzipShare: 0 }).body)),
    cpu: cpuAt(ENDLESS_BATCH),
    clickhouseCpuPerInsert: model.clickhouseCpuPerInsert / inputs['core-speed'],
    fullBatchRows: model.fullBatchRows(load),
    spansPerPayload: load.spansPerPayload,
  }
  const redis = planRedis(demand, inputs)
  const least = inputs['least-processes']
  let workers = least
  let clickhouse = planClickHouse(demand, inputs, redis.partitions, workers)
  // More workers make smaller inserts, which cost a worker more for a span. So their number grows until it is enough.
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const needed = processes(peakRate * cpuAt(clickhouse).worker, goal)
    if (needed <= workers) break
    workers = needed
    clickhouse = planClickHouse(demand, inputs, redis.partitions, workers)
  }
  const cpu = cpuAt(clickhouse)
  const edges = Math.max(least, processes(peakRate * cpu.edge, goal))
  return {
    meanRate,
    peakRate,
    cpu,
    bytes: demand.bytes,
    edges,
    workers,
    edgeCores: sizeOf(EDGE_SIZES, (peakRate * cpu.edge) / goal / edges),
    workerCores: sizeOf(WORKER_SIZES, (peakRate * cpu.worker) / goal / workers),
    redis,
    clickhouse,
    objects: clickhouse.stored * inputs.backups,
    traffic: trafficOf(demand, inputs),
    enlarged: [...redis.enlarged, ...clickhouse.enlarged],
    exceeded: [...redis.exceeded, ...clickhouse.exceeded],
  }
}

/** Returns how many processes of one core each are needed. */
const processes = (cores: number, goal: number) => Math.max(1, Math.ceil(cores / goal - 1e-9))

/** Returns the smallest size that is enough, or the largest. */
const sizeOf = (sizes: readonly number[], needed: number) => sizes.find(size => size >= needed - 1e-9) ?? 1

const compressed = (bytes: SpanBytes): SpanBytes => ({
  ...bytes,
  clickhouseReceived: bytes.clickhouseReceived * COMPRESSED_SHARE,
})

function trafficOf({ peakRate, bytes }: SpanDemand, inputs: Inputs): Plan['traffic'] {
  return {
    'clients to edges': peakRate * bytes.body,
    'edges to Redis': peakRate * bytes.redisReceived,
    'Redis to replicas': peakRate * bytes.redisReceived * inputs['redis-replicas'],
    'Redis to workers': peakRate * bytes.redisSent,
    'workers to ClickHouse': peakRate * bytes.clickhouseReceived,
    'ClickHouse to replicas': peakRate * bytes.stored * (inputs['clickhouse-replicas'] - 1),
  }
}

/** Returns the measured bytes, in proportion to the size of a span that the inputs state. */
function scaledBytes(bytes: SpanBytes, { 'bytes-per-span': wanted }: Inputs, measured: number): SpanBytes {
  if (wanted === 0) return bytes
  const factor = wanted / measured
  return {
    body: bytes.body * factor,
    redisReceived: bytes.redisReceived * factor,
    redisSent: bytes.redisSent * factor,
    clickhouseReceived: bytes.clickhouseReceived * factor,
    stored: bytes.stored * factor,
  }
}

const ofSpeed = ({ edge, worker, redis, clickhouse }: SpanCpu, speed: number): SpanCpu => ({
  edge: edge / speed,
  worker: worker / speed,
  redis: redis / speed,
  clickhouse: clickhouse / speed,
})
