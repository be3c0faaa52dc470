import { createServer } from 'node:http'
import { createClient } from '@clickhouse/client'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { RowContext } from './protobufjs.ts'
import { createRowInserter } from './row-inserter.ts'
import { decodeTraceRows } from './trace-rows.ts'

/**
 * Processes the jobs of queue-per-request.ts. Decodes each job with protobufjs, and inserts its rows as JSONEachRow
 * together with those of other jobs. The concurrency is as high as the largest batch needs: a job only waits for its insert
 * (BullMQ's guide, "Concurrency"). Rows are gathered as ClickHouse's "Asynchronous inserts" recommends, and a job is complete
 * when they are stored (`wait_for_async_insert`).
 */
const CONCURRENCY = 1_000

const clickhouse = createClient({
  url: process.env.CLICKHOUSE_URL ?? '',
  database: process.env.CLICKHOUSE_DATABASE ?? '',
  max_open_connections: CONCURRENCY,
})
const insertRows = createRowInserter(clickhouse, {
  table: 'otel_traces',
  gatherIn: process.env.GATHER_IN === 'server' ? 'server' : 'process',
  async_insert_busy_timeout_max_ms: 200,
  // A hundred thousand spans. ClickHouse's default of 10 MB makes inserts of 7,000, which cost more.
  async_insert_max_data_size: 125_000_000,
})

const worker = new Worker<RowContext & { body: string }>(
  'traces',
  async job => {
    const rows = decodeTraceRows(Buffer.from(job.data.body, 'base64'), job.data)
    await insertRows(rows.map(row => `${JSON.stringify(row)}\n`).join(''))
  },
  {
    connection: new Redis(process.env.REDIS_URL ?? '', { maxRetriesPerRequest: null, enableAutoPipelining: true }),
    concurrency: CONCURRENCY,
    removeOnComplete: { count: 0 },
  },
)
worker.on('failed', (_job, error) => console.error(error.message))
await worker.waitUntilReady()
createServer((_request, response) => response.end('ok\n')).listen(Number(process.env.PORT), '127.0.0.1')
process.once('SIGTERM', () => process.exit(0))
