import { SIGNAL_QUEUES } from '../../../schemas/queues/names.ts'
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
import { BENCH_DATABASE, type BenchClickHouse, type BenchRedis } from '../../services/start-stores.ts'
import { readMetric } from '../../support/read-metric.ts'
import type { ScenarioRun } from '../../support/scenario.ts'
import { PARTITIONS_SETTING, type ScaleFleet } from './points.ts'

const CONNECTIONS = 64
const QUEUE = SIGNAL_QUEUES.traces

/** Stores and tools that all fleets share. */
export interface ScaleStage {
  readonly context: ScenarioRun
  readonly generator: LoadGenerator
  readonly redis: BenchRedis
  readonly clickhouse: BenchClickHouse
}

/** The fleet that runs. Only one does at a time, so that no other takes jobs or memory. */
export interface Fleets {
  /** Ends the fleet that runs and starts this one, unless it runs already. Its code is compiled then. */
  run(fleet: ScaleFleet): Promise<PipelineContender>
}

/** Starts and ends fleets. Each has processes of its own, because the number of partitions is one of their settings. */
export function createFleets(stage: ScaleStage): Fleets {
  let running: { readonly key: string; readonly contender: PipelineContender; stop(): Promise<void> } | undefined
  return {
    async run(fleet) {
      const key = JSON.stringify(fleet)
      if (running?.key === key) return running.contender
      await running?.stop()
      running = undefined
      const processes = await startFleet(stage, fleet)
      const contender = contenderOf(stage, processes)
      running = { key, contender, stop: () => stopFleet(processes) }
      await warmUp(stage, contender, fleet)
      return contender
    },
  }
}

interface FleetProcesses {
  readonly edge: BenchEdge
  readonly workers: readonly BenchWorkers[]
}

async function startFleet({ context, redis, clickhouse }: ScaleStage, fleet: ScaleFleet): Promise<FleetProcesses> {
  const partitions = fleet.partitions === 1 ? {} : { [PARTITIONS_SETTING]: String(fleet.partitions) }
  const edge = await startEdge(context, redis, { ...QUEUE_LIMITS, ...partitions })
  const workers = await Promise.all(
    Array.from({ length: fleet.workers }, () => startWorkers(context, redis, clickhouse, [QUEUE], partitions)),
  )
  return { edge, workers }
}

async function stopFleet({ edge, workers }: FleetProcesses): Promise<void> {
  await edge.stop()
  await Promise.all(workers.map(worker => worker.stop()))
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
      ClickHouse: clickhouse.pid,
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
      const [toRedis, toClickHouse] = [await redis.networkBytes(), await networkBytes(clickhouse.client)]
      return {
        redisReceivedBytes: toRedis.received,
        redisSentBytes: toRedis.sent,
        clickhouseReceivedBytes: toClickHouse.received,
      }
    },
  }
}
