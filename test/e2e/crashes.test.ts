import { randomBytes } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { namedReceipts, receiptName } from '../support/clients/named-receipts.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

/** One span in ten fails, so that occurrences and findings are counted too. */
const ERROR_EVERY = 10
const SPANS_PER_EXPORT = 5

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack({
    JOB_LOCK_MS: '2000',
    JOB_STALLED_CHECK_MS: '500',
    SWEEP_INTERVAL_MS: '1000',
    SHUTDOWN_DEADLINE_MS: '4000',
  })
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

describe.each([
  ['the workers', () => stack.workers],
  ['Redis', () => stack.services.redis],
  ['ClickHouse', () => stack.services.clickhouse],
  ['the edge', () => stack.edge],
] as const)('kill -9 of %s in the middle of a stream of exports', (_name, victim) => {
  it('leaves every acknowledged span stored exactly once, and no other twice', async () => {
    const stream = startExports(`run-${randomBytes(4).toString('hex')}`)
    await until('exports are acknowledged', () => stream.acknowledged.length > 300)
    for (let round = 0; round < 3; round++) {
      await victim().kill9()
      await until('exports are tried during the outage', () => stream.attempts() > 20)
      await victim().restart()
      const before = stream.acknowledged.length
      await until('exports are acknowledged again', () => stream.acknowledged.length > before + 300)
    }
    await stream.stop()
    const expected = new Set(stream.acknowledged.flat())
    const sent = new Set(stream.sent)
    const stored = await until(
      'every acknowledged span is stored',
      async () => {
        const counts = await countSpans(stream.name)
        return [...expected].every(id => counts.has(id)) ? counts : undefined
      },
      { deadlineMs: 60_000, everyMs: 200 },
    )
    expect([...stored].filter(([id, count]) => count !== 1 || !sent.has(id))).toEqual([])
    await until('the log counts the stored rows', async () => {
      const [log] = await query<{ rows: string }>('SELECT sum(rows) AS rows FROM ingest_log', stream.name)
      const [all] = await query<{ rows: string }>('SELECT count() AS rows FROM spans', stream.name)
      return log !== undefined && log.rows === all?.rows
    })
    const named = await until('the log contains every receipt', async () => {
      const counts = await namedReceipts(sql => query(sql, stream.name))
      return stream.receipts.every(id => counts.has(receiptName(id))) ? counts : undefined
    })
    expect([...named].filter(([, count]) => count !== 1)).toEqual([])
    const failed = [...stored.keys()].filter(id => Number.parseInt(id.slice(0, 8), 16) % ERROR_EVERY === 0)
    await until('findings count the stored occurrences', async () => {
      const { rows, occurrences, inTraces } = await countOccurrences(stream.name)
      expect(rows).toBeLessThanOrEqual(failed.length)
      return rows === failed.length && occurrences === rows && inTraces === rows
    })
  })
})

it('SIGTERM ends edge and workers in time while ClickHouse is unavailable, and acknowledged spans are stored afterwards', async () => {
  const stream = startExports(`run-${randomBytes(4).toString('hex')}`)
  await until('exports are acknowledged', () => stream.acknowledged.length > 300)
  await stack.services.clickhouse.kill9()
  await until('the queue grows', () => stream.attempts() > 200)
  for (const part of [stack.workers, stack.edge]) {
    expect(await part.stop(5_000)).toEqual({ code: 0, signal: null })
  }
  await stream.stop()
  await Promise.all([stack.services.clickhouse.restart(), stack.workers.restart(), stack.edge.restart()])
  const expected = stream.acknowledged.flat()
  await until('every acknowledged span is stored', async () => {
    const counts = await countSpans(stream.name)
    return expected.every(id => counts.get(id) === 1)
  })
})

interface ExportStream {
  readonly name: string
  /** Span ids of each acknowledged export. */
  readonly acknowledged: string[][]
  readonly sent: string[]
  /** Receipt ids of the acknowledged exports. */
  readonly receipts: string[]
  /** Returns the number of exports tried since the last call. */
  attempts(): number
  stop(): Promise<void>
}

/** Starts eight clients that export without pause, and treat every status but 200 as a loss. */
function startExports(name: string): ExportStream {
  const acknowledged: string[][] = []
  const sent: string[] = []
  const receipts: string[] = []
  let serial = 0
  let attempts = 0
  let over = false

  async function client(): Promise<void> {
    while (!over) {
      const ids = Array.from({ length: SPANS_PER_EXPORT }, () => {
        const id = Buffer.alloc(8)
        id.writeUInt32BE(++serial, 0)
        randomBytes(4).copy(id, 4)
        return id
      })
      sent.push(...ids.map(id => id.toString('hex')))
      const receiptId = await post(exportOf(name, ids)).catch(() => undefined)
      attempts++
      if (receiptId !== undefined) {
        acknowledged.push(ids.map(id => id.toString('hex')))
        receipts.push(receiptId)
      } else await new Promise(resolve => setTimeout(resolve, 20))
    }
  }

  const clients = Array.from({ length: 8 }, client)
  return {
    name,
    acknowledged,
    sent,
    receipts,
    attempts() {
      const count = attempts
      attempts = 0
      return count
    },
    async stop() {
      over = true
      await Promise.all(clients)
    },
  }
}

/** Sends an export and returns its receipt id, or undefined if it was refused. */
async function post(body: Uint8Array): Promise<string | undefined> {
  const response = await fetch(`${stack.ingestUrl}/drain/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': stack.secrets.publicKey },
    body: new Uint8Array(body),
    signal: AbortSignal.timeout(5_000),
  })
  await response.arrayBuffer()
  return response.status === 200 ? (response.headers.get('x-receipt-id') ?? 'none') : undefined
}

function exportOf(name: string, ids: Buffer[]): Uint8Array {
  const now = BigInt(Date.now()) * 1_000_000n
  return toBinary(
    ExportTraceServiceRequestSchema,
    create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: { attributes: [{ key: 'service.name', value: { value: { case: 'stringValue', value: name } } }] },
          scopeSpans: [
            {
              spans: ids.map(spanId => ({
                traceId: randomBytes(16),
                spanId,
                name: 'work',
                startTimeUnixNano: now,
                endTimeUnixNano: now + 1_000n,
                ...(spanId.readUInt32BE(0) % ERROR_EVERY === 0 ? { status: { code: 2, message: 'it failed' } } : {}),
              })),
            },
          ],
        },
      ],
    }),
  )
}

async function countSpans(name: string): Promise<Map<string, number>> {
  const rows = await query<{ id: string; count: string }>(
    'SELECT lower(hex(span_id)) AS id, count() AS count FROM spans WHERE service_name = {name: String} GROUP BY id',
    name,
  )
  return new Map(rows.map(row => [row.id, Number(row.count)]))
}

async function countOccurrences(name: string): Promise<{ rows: number; occurrences: number; inTraces: number }> {
  const [rows] = await query<{ count: string; ids: string[] }>(
    'SELECT count() AS count, groupUniqArray(finding_id) AS ids FROM exceptions WHERE service_name = {name: String}',
    name,
  )
  const [findings] = await query<{ count: string }>(
    `SELECT sum(occurrence_count) AS count FROM findings WHERE finding_id IN
       (SELECT finding_id FROM exceptions WHERE service_name = {name: String})`,
    name,
  )
  const [traces] = await query<{ count: string }>(
    `SELECT sum(occurrence_count) AS count FROM finding_traces WHERE finding_id IN
       (SELECT finding_id FROM exceptions WHERE service_name = {name: String})`,
    name,
  )
  return { rows: Number(rows?.count), occurrences: Number(findings?.count), inTraces: Number(traces?.count) }
}

async function query<T>(sql: string, name: string): Promise<T[]> {
  const result = await clickhouse
    .query({ query: sql, query_params: { name }, format: 'JSONEachRow' })
    .catch(() => undefined) // ClickHouse may be restarting
  return result ? result.json<T>() : []
}
