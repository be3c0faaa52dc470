import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { createClient } from '@clickhouse/client'
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { decodeTraceRows, type Origin } from './otlp-rows.ts'

/**
 * The back half of queue-per-request.ts: each job is decoded by protobufjs, and its rows inserted as JSONEachRow. Rows of
 * many jobs go together after 200 ms or at 100,000: what ClickHouse's asynchronous inserts do on a server by default. Done
 * here because ClickHouse as `npm start` runs it has no queue for them, and inserts one by one whatever it is asked. Rows
 * wait as text: a hundred thousand objects would cost the garbage collector more than the decoder.
 */
const CONCURRENCY = 1_000
const MAX_ROWS = 100_000
const MAX_AGE_MS = 200

const clickhouse = createClient({
  url: process.env.CLICKHOUSE_URL ?? '',
  database: process.env.CLICKHOUSE_DATABASE ?? '',
})

interface Batch {
  rows: number
  readonly lines: string[]
  readonly stored: Promise<void>
  send(): void
}

let open: Batch | undefined

function openBatch(): Batch {
  const { promise, resolve } = Promise.withResolvers<void>()
  const lines: string[] = []
  const batch: Batch = {
    rows: 0,
    lines,
    stored: promise.then(() => insert(lines)),
    send() {
      clearTimeout(timer)
      if (open === batch) open = undefined
      resolve()
    },
  }
  const timer = setTimeout(batch.send, MAX_AGE_MS)
  return batch
}

async function insert(lines: readonly string[]): Promise<void> {
  const { stream } = await clickhouse.exec({
    query: 'INSERT INTO otel_traces FORMAT JSONEachRow',
    values: Readable.from(lines, { objectMode: false }),
    clickhouse_settings: { wait_end_of_query: 1 },
  })
  for await (const _ of stream);
}

const worker = new Worker<Origin & { body: string }>(
  'traces',
  async job => {
    const rows = decodeTraceRows(Buffer.from(job.data.body, 'base64'), job.data)
    open ??= openBatch()
    const batch = open
    batch.rows += rows.length
    batch.lines.push(rows.map(row => `${JSON.stringify(row)}\n`).join(''))
    if (batch.rows >= MAX_ROWS) batch.send()
    await batch.stored
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
