import { TEST_CLUSTER } from '../../../test/support/cluster/clickhouse-cluster.ts'
import { sendRequests } from '../../load/send-requests.ts'
import type { LoadGenerator } from '../../load/start-generator.ts'
import { networkBytes } from '../../measure/clickhouse-work.ts'
import { measurePipeline, type PipelineContender } from '../../measure/measure-pipeline.ts'
import {
  type BenchEdge,
  type BenchWorkers,
  QUEUE_LIMITS,
  startEdge,
  startWorkers,
} from '../../services/start-product.ts'
import {
  BENCH_DATABASE,
  type BenchClickHouse,
  type BenchRedis,
  startBenchCluster,
} from '../../services/start-stores.ts'
import { readMetric } from '../../support/read-metric.ts'
import type { ScenarioRun } from '../../support/scenario.ts'
import { CLUSTER_SETTING, PARTITIONS_SETTING, type ScaleFleet } from './points.ts'

const CONNECTIONS = 64
const QUEUE = 'traces'

/** Stores and tools that all fleets share. */
export interface ScaleStage {
  readonly context: ScenarioRun
  readonly generator: LoadGenerator
  readonly redis: BenchRedis
  readonly clickhouse: BenchClickHouse
}

/** A fleet with the servers that store its rows. */
export interface RunningFleet {
  readonly contender: PipelineContender
  readonly clickhouse: BenchClickHouse
}

/** The fleet that runs. Only one does at a time, so that no other takes jobs or memory. */
export interface Fleets {
  /** Ends the fleet that runs and starts this one, unless it runs already. Its code is compiled then. */
  run(fleet: ScaleFleet): Promise<RunningFleet>
}

/** Starts and ends fleets. Each has processes of its own, because the number of partitions is one of their settings. */
export function createFleets(stage: ScaleStage): Fleets {
  let running: (RunningFleet & { readonly key: string; stop(): Promise<void> }) | undefined
  const clusters = new Map<number, BenchClickHouse>()
  return {
    async run(fleet) {
      const key = JSON.stringify(fleet)
      if (running?.key === key) return running
      await running?.stop()
      running = undefined
      const clickhouse = fleet.shards === 1 ? stage.clickhouse : await clusterOf(fleet.shards)
      const fleetStage = { ...stage, clickhouse }
      const processes = await startFleet(fleetStage, fleet)
      const contender = contenderOf(fleetStage, processes)
      running = { key, contender, clickhouse, stop: () => stopFleet(stage, processes) }
      await warmUp(fleetStage, contender, fleet)
      return running
    },
  }

  /** Returns the servers of a cluster, which are started when they are needed first. */
  async function clusterOf(shards: number): Promise<BenchClickHouse> {
    const cluster = clusters.get(shards) ?? (await startBenchCluster(stage.context, shards))
    clusters.set(shards, cluster)
    return cluster
  }
}

interface FleetProcesses {
  readonly edge: BenchEdge
  readonly workers: readonly BenchWorkers[]
}

async function startFleet({ context, redis, clickhouse }: ScaleStage, fleet: ScaleFleet): Promise<FleetProcesses> {
  const partitions = fleet.partitions === 1 ? {} : { [PARTITIONS_SETTING]: String(fleet.partitions) }
  const cluster = clickhouse.shards ? { [CLUSTER_SETTING]: TEST_CLUSTER } : {}
  const edge = await startEdge(context, redis, { ...QUEUE_LIMITS, ...partitions })
  const workers = await Promise.all(
    Array.from({ length: fleet.workers }, () =>
      startWorkers(context, redis, clickhouse, [QUEUE], { ...partitions, ...cluster }),
    ),
  )
  return { edge, workers }
}

/** Also empties the queues: partitions stay registered for an hour, and the workers of the next fleet would look at them. */
async function stopFleet({ redis }: ScaleStage, { edge, workers }: FleetProcesses): Promise<void> {
  await edge.stop()
  await Promise.all(workers.map(worker => worker.stop()))
  await redis.empty(edge.queueDatabase)
}

async function warmUp({ context, clickhouse }: ScaleStage, contender: PipelineContender, fleet: ScaleFleet) {
  const durationMs = (1 + fleet.workers) * (context.quick ? 500 : 1_000)
  await measurePipeline(clickhouse, contender, { signal: 'traces', records: 200 }, durationMs)
}

function contenderOf(
  { generator, redis, clickhouse }: ScaleStage,
  { edge, workers }: FleetProcesses,
): PipelineContender {
  const name = 'the edge'
  const servers = clickhouse.shards ?? [clickhouse]
  const sum = async (metric: string) => {
    const values = await Promise.all(workers.map(({ adminUrl }) => readMetric(adminUrl, metric, `queue="${QUEUE}"`)))
    return values.reduce((total, value) => total + value, 0)
  }
  return {
    name,
    pids: {
      edge: edge.pid,
      ...Object.fromEntries(workers.map(({ pid }, i) => [`worker ${i + 1}`, pid])),
      Redis: redis.pid,
      ...Object.fromEntries(servers.map(({ pid }, i) => [`ClickHouse ${i + 1}`, pid])),
    },
    database: BENCH_DATABASE,
    table: 'spans',
    send: sendRequests(generator, {
      name,
      port: edge.port,
      path: '/drain/v1/traces',
      headers: { 'x-service-public-key': edge.publicKey },
      connections: CONNECTIONS,
    }),
    inserts: async () => ({
      inserts: await sum('penstock_batch_rows_count'),
      rows: await sum('penstock_batch_rows_sum'),
    }),
    async counters() {
      const toRedis = await redis.networkBytes()
      const toClickHouse = await Promise.all(servers.map(({ client }) => networkBytes(client)))
      return {
        redisReceivedBytes: toRedis.received,
        redisSentBytes: toRedis.sent,
        clickhouseReceivedBytes: toClickHouse.reduce((total, { received }) => total + received, 0),
      }
    },
  }
}
