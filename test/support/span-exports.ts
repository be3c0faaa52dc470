import { randomBytes } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'vitest'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { EXPORT_METHODS, GrpcClient } from './clients/grpc-client.ts'
import { namedReceipts, receiptName } from './clients/named-receipts.ts'
import type { Stack } from './services/stack.ts'
import { until } from './until.ts'

/** One span in ten fails, so that occurrences and findings are counted too. */
const ERROR_EVERY = 10
const SPANS_PER_EXPORT = 5

/** A server or process that a test kills. */
interface Victim {
  kill9(): Promise<void>
  restart(): Promise<void>
}

/** Settings of a stack with which crashes are noticed soon. */
export const CRASH_SETTINGS = {
  JOB_LOCK_MS: '2000',
  JOB_STALLED_CHECK_MS: '500',
  SWEEP_INTERVAL_MS: '1000',
  SHUTDOWN_DEADLINE_MS: '4000',
}

/** Clients that export spans without pause, and what a stack has stored of their exports. */
export class SpanExports {
  readonly name = `run-${randomBytes(4).toString('hex')}`
  /** Span ids of each acknowledged export. */
  readonly acknowledged: string[][] = []
  readonly #sent: string[] = []
  /** Receipt ids of the acknowledged exports. */
  readonly #receipts: string[] = []
  readonly #stack: Stack
  readonly #clickhouse: ClickHouseClient
  readonly #clients: readonly Promise<void>[]
  readonly #grpc: GrpcClient
  #serial = 0
  #attempts = 0
  #isOver = false

  /** Starts eight clients, half of them of gRPC, which treat everything but a success as a loss. */
  constructor(stack: Stack, clickhouse: ClickHouseClient) {
    this.#stack = stack
    this.#clickhouse = clickhouse
    this.#grpc = new GrpcClient(stack.grpcUrl)
    this.#clients = Array.from({ length: 8 }, (_, i) => this.#export(i % 2 === 0))
  }

  /** Number of exports that were tried. */
  get attempts(): number {
    return this.#attempts
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
    this.#grpc.close()
  }

  /** Expects that every acknowledged span is stored exactly once, with its receipt and its finding, and no other twice. */
  async expectStoredOnce(): Promise<void> {
    const expected = new Set(this.acknowledged.flat())
    const sent = new Set(this.#sent)
    const stored = await until(
      'every acknowledged span is stored',
      async () => {
        const counts = await this.countSpans()
        return [...expected].every(id => counts.has(id)) ? counts : undefined
      },
      { deadlineMs: 60_000, everyMs: 200 },
    )
    const expectOnce = (counts: Map<string, number>) =>
      expect([...counts].filter(([id, count]) => count !== 1 || !sent.has(id))).toEqual([])
    expectOnce(stored)
    await until('the log counts the stored rows', async () => {
      const [log] = await this.query<{ rows: string }>('SELECT sum(rows) AS rows FROM ingest_log')
      const [all] = await this.query<{ rows: string }>('SELECT count() AS rows FROM spans')
      return log !== undefined && log.rows === all?.rows
    })
    const named = await until('the log contains every receipt', async () => {
      const counts = await namedReceipts(sql => this.query(sql))
      return this.#receipts.every(id => counts.has(receiptName(id))) ? counts : undefined
    })
    expect([...named].filter(([, count]) => count !== 1)).toEqual([])
    // An export whose answer was lost may be stored after all that were acknowledged, so the spans are counted again.
    let counted: object = {}
    const all = await until('findings count the stored occurrences', async () => {
      const counts = await this.countSpans()
      const failed = [...counts.keys()].filter(id => Number.parseInt(id.slice(0, 8), 16) % ERROR_EVERY === 0).length
      const { rows, occurrences, inBuckets } = await this.#countOccurrences()
      counted = { failed, rows, occurrences, inBuckets }
      return rows === failed && occurrences === rows && inBuckets === rows ? counts : undefined
    }).catch(cause => {
      throw new Error(`findings do not count the stored occurrences: ${JSON.stringify(counted)}`, { cause })
    })
    expectOnce(all)
  }

  /** Counts the stored rows of each span. */
  async countSpans(): Promise<Map<string, number>> {
    const rows = await this.query<{ id: string; count: string }>(
      'SELECT lower(hex(span_id)) AS id, count() AS count FROM spans WHERE service_name = {name: String} GROUP BY id',
    )
    return new Map(rows.map(row => [row.id, Number(row.count)]))
  }

  /** Returns the rows of a query with the parameter `name`, or none while ClickHouse does not answer. */
  async query<T>(sql: string): Promise<T[]> {
    const params = { query: sql, query_params: { name: this.name }, format: 'JSONEachRow' } as const
    const result = await this.#clickhouse.query(params).catch(() => undefined)
    return result ? result.json<T>() : []
  }

  async #export(isGrpc: boolean): Promise<void> {
    while (!this.#isOver) {
      const ids = Array.from({ length: SPANS_PER_EXPORT }, () => {
        const id = Buffer.alloc(8)
        id.writeUInt32BE(++this.#serial, 0)
        randomBytes(4).copy(id, 4)
        return id
      })
      this.#sent.push(...ids.map(id => id.toString('hex')))
      const body = spanExport(this.name, ids)
      const receiptId = await (isGrpc ? this.#call(body) : this.#post(body)).catch(() => undefined)
      this.#attempts++
      if (receiptId !== undefined) {
        this.acknowledged.push(ids.map(id => id.toString('hex')))
        this.#receipts.push(receiptId)
      } else await new Promise(resolve => setTimeout(resolve, 20))
    }
  }

  /** Sends an export and returns its receipt id, or undefined if it was refused. */
  async #post(body: Uint8Array): Promise<string | undefined> {
    const { ingestUrl, secrets } = this.#stack
    const response = await fetch(`${ingestUrl}/drain/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-protobuf', 'x-service-public-key': secrets.publicKey },
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(5_000),
    })
    await response.arrayBuffer()
    return response.status === 200 ? (response.headers.get('x-receipt-id') ?? 'none') : undefined
  }

  /** Sends an export over gRPC, and returns the same. */
  async #call(body: Uint8Array): Promise<string | undefined> {
    const metadata = { 'x-service-public-key': this.#stack.secrets.publicKey }
    const { code, trailers } = await this.#grpc.call(EXPORT_METHODS.traces, Buffer.from(body), metadata)
    return code === 0 ? String(trailers.get('x-receipt-id')) : undefined
  }

  async #countOccurrences(): Promise<{ rows: number; occurrences: number; inBuckets: number }> {
    const [rows] = await this.query<{ count: string }>(
      'SELECT count() AS count FROM exceptions WHERE service_name = {name: String}',
    )
    const [occurrences, inBuckets] = await Promise.all(
      ['findings', 'finding_buckets'].map(async table => {
        const [found] = await this.query<{ count: string }>(
          `SELECT sum(occurrence_count) AS count FROM ${table} WHERE variant_id IN
             (SELECT variant_id FROM exceptions WHERE service_name = {name: String})`,
        )
        return Number(found?.count)
      }),
    )
    return { rows: Number(rows?.count), occurrences: occurrences ?? 0, inBuckets: inBuckets ?? 0 }
  }
}

/** Kills a victim in the middle of a stream of exports, and starts it again. Exports are acknowledged before and afterwards. */
export async function killDuring(exports: SpanExports, victim: Victim): Promise<void> {
  await until('exports are acknowledged', () => exports.acknowledged.length > 300)
  await victim.kill9()
  const tried = exports.attempts
  await until('exports are tried during the outage', () => exports.attempts > tried + 20)
  await victim.restart()
  const before = exports.acknowledged.length
  await until('exports are acknowledged again', () => exports.acknowledged.length > before + 300)
}

const EXCEPTION = { key: 'exception.type', value: { value: { case: 'stringValue' as const, value: 'E' } } }

/** Returns an export of spans with these ids in protobuf, of a service of this name. One span in ten has an exception. */
export function spanExport(name: string, ids: readonly Buffer[]): Uint8Array {
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
                events:
                  spanId.readUInt32BE(0) % ERROR_EVERY === 0 ? [{ name: 'exception', attributes: [EXCEPTION] }] : [],
              })),
            },
          ],
        },
      ],
    }),
  )
}
