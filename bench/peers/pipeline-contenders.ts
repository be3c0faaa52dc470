import type { Signal } from '../../schemas/queues/names.ts'
import { sendRequests } from '../load/send-requests.ts'
import { receivedBytes } from '../measure/clickhouse-work.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import type { BenchEdge, BenchWorkers } from '../services/start-product.ts'
import type { Stage } from '../services/start-stage.ts'
import { BENCH_DATABASE } from '../services/start-stores.ts'
import { readMetric } from '../support/read-metric.ts'

/** Name of the product in reports. */
export const PRODUCT = 'product'

const TABLES: Record<Signal, string> = { traces: 'spans', logs: 'logs', metrics: 'metric_points' }

/** Returns the product as a contender, with the worker processes of this signal. */
export function productContender(
  { generator, redis, clickhouse }: Stage,
  edge: BenchEdge,
  signal: Signal,
  workers: readonly BenchWorkers[],
): PipelineContender {
  const sum = async (metric: string) => {
    const label = `queue="${signal}"`
    const values = await Promise.all(workers.map(({ adminUrl }) => readMetric(adminUrl, metric, label)))
    return values.reduce((total, value) => total + value, 0)
  }
  return {
    name: PRODUCT,
    pids: {
      edge: edge.pid,
      ...Object.fromEntries(workers.map(({ pid }, i) => [i === 0 ? 'worker' : `worker ${i + 1}`, pid])),
      Redis: redis.pid,
      ClickHouse: clickhouse.pid,
    },
    database: BENCH_DATABASE,
    table: TABLES[signal],
    send: sendRequests(generator, {
      name: PRODUCT,
      port: edge.port,
      path: `/drain/v1/${signal}`,
      headers: { 'x-service-public-key': edge.publicKey },
    }),
    inserts: async () => ({
      inserts: await sum('penstock_batch_rows_count'),
      rows: await sum('penstock_batch_rows_sum'),
    }),
    async counters() {
      const [toRedis, toClickHouse] = [await redis.networkBytes(), await receivedBytes(clickhouse.client)]
      return {
        redisReceivedBytes: toRedis.received,
        redisSentBytes: toRedis.sent,
        clickhouseReceivedBytes: toClickHouse,
      }
    },
  }
}
