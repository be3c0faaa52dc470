import type { Signal } from '../../schemas/queues/names.ts'
import { sendRequests } from '../load/send-requests.ts'
import type { LoadGenerator } from '../load/start-generator.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { type BenchEdge, startWorkers } from '../services/start-product.ts'
import { BENCH_DATABASE, type BenchClickHouse, type BenchRedis } from '../services/start-stores.ts'
import { readMetric } from '../support/read-metric.ts'
import type { ScenarioRun } from '../support/scenario.ts'

/** Name of the product in reports. */
export const PRODUCT = 'product'

const CONNECTIONS = 64

/** Stores and tools that the contenders share. */
export interface PipelineStage {
  readonly context: ScenarioRun
  readonly generator: LoadGenerator
  readonly redis: BenchRedis
  readonly clickhouse: BenchClickHouse
}

const TABLES: Record<Signal, string> = { traces: 'spans', logs: 'logs', metrics: 'metric_points' }

/** Starts the product with a worker process for this signal only, so that its cost is not mixed with another's. */
export async function startProduct(
  { context, generator, redis, clickhouse }: PipelineStage,
  edge: BenchEdge,
  signal: Signal,
): Promise<PipelineContender> {
  const workers = await startWorkers(context, redis, clickhouse, [signal])
  return {
    name: PRODUCT,
    pids: { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid },
    database: BENCH_DATABASE,
    table: TABLES[signal],
    send: sendRequests(generator, {
      name: PRODUCT,
      port: edge.port,
      path: `/drain/v1/${signal}`,
      headers: { 'x-service-public-key': edge.publicKey },
      connections: CONNECTIONS,
    }),
    inserts: async () => ({
      inserts: await readMetric(workers.adminUrl, 'penstock_batch_rows_count', `queue="${signal}"`),
      rows: await readMetric(workers.adminUrl, 'penstock_batch_rows_sum', `queue="${signal}"`),
    }),
  }
}
