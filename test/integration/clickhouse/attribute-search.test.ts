import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, insertNative } from '../../../clickhouse/client.ts'
import {
  type AttributeValue,
  attributeOf,
  packedCondition,
  storedKey,
} from '../../../clickhouse/queries/attributes/packed-attributes.ts'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { KeyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import { createLogsBatch } from '../../../workers/otlp/logs/logs.ts'
import { createSpansBatch } from '../../../workers/otlp/traces/spans.ts'
import { createDatabase } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const ROWS = 20_000
/** Granules of 8,192 rows; the last one has the rest too. */
const GRANULES = 2
const FRAME = { workspaceId: 'ws', surfaceId: 'srf', receivedAtMs: Date.now() }

type Table = 'spans' | 'logs'

describe.each(['spans', 'logs'] as const)('the index of attributes of %s', table => {
  const database = `attribute_search_${table}_${process.pid}`
  let client: ClickHouseClient

  beforeAll(async () => {
    client = await createDatabase(sharedServices().clickhouseUrl, database)
  })
  afterAll(async () => {
    await client?.command({ query: `DROP DATABASE ${database}` })
    await client?.close()
  })

  const wanted: readonly AttributeValue[] = [
    { key: 'order.id', value: '7' },
    { key: 'order.id', value: String(ROWS + 7) },
    { key: 'order.id', value: String(2 * ROWS + 7) },
    // The value of another key.
    { key: 'attempt', value: '7' },
    { key: 'attempt', value: '3' },
    { key: 'order.id', value: 'none' },
    { key: 'it’s "quoted" \\ \0', value: 'it’s "quoted" \\ \0' },
    { key: 'note', value: '' },
    { key: 'no.such.key', value: '' },
  ]

  it('finds what a scan finds, in parts with it and without it', async () => {
    await insertAsWorker(0)
    await insertAsWorker(ROWS)
    await insertWithIndex()

    for (const attribute of wanted)
      expect(await found(attribute), JSON.stringify(attribute)).toEqual(await scan(attribute))
    expect(await found({ key: 'order.id', value: String(2 * ROWS + 7) })).toEqual([2 * ROWS + 7])
    expect(await found({ key: 'note', value: '' })).toHaveLength(3)
    expect(await found({ key: 'no.such.key', value: '' })).toEqual([])
  })

  it('is built by the first merge and not by the insert of a worker, and then excludes granules', async () => {
    await client.command({ query: `TRUNCATE TABLE ${table} SETTINGS alter_sync = 2` })
    await client.command({ query: `SYSTEM STOP MERGES ${table}` })
    await insertAsWorker(0)
    expect(await granules('none')).toEqual({ read: GRANULES, of: GRANULES })

    await client.command({ query: `SYSTEM START MERGES ${table}` })
    await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` })
    expect(await granules('none')).toEqual({ read: 0, of: GRANULES })
    expect(await granules('7')).toEqual({ read: 1, of: GRANULES })
    for (const attribute of wanted)
      expect(await found(attribute), JSON.stringify(attribute)).toEqual(await scan(attribute))
  })

  /** Returns the ids of the orders that have an attribute, by the product's condition. */
  async function found(attribute: AttributeValue): Promise<number[]> {
    const { sql, params } = packedCondition('wanted', attribute)
    return select(sql, params, '')
  }

  async function scan({ key, value }: AttributeValue): Promise<number[]> {
    const attribute = attributeOf('{key: String}')
    const unescaped = `if(${attribute.isEscaped},
      replaceAll(replaceAll(${attribute.value}, '\\x01\\x02', '\\0'), '\\x01\\x03', '\\x01'), ${attribute.value})`
    const is = `${attribute.exists} AND ${unescaped} = {value: String}`
    return select(is, { key: storedKey(key), value }, 'SETTINGS use_skip_indexes = 0')
  }

  async function select(sql: string, params: Readonly<Record<string, unknown>>, settings: string): Promise<number[]> {
    const order = attributeOf("'\\0order.id\\0'").value
    const query = `SELECT toUInt32(${order}) AS id FROM ${table}
      WHERE workspace_id = 'ws' AND ${sql} ORDER BY id ${settings}`
    const result = await client.query({ query, query_params: params, format: 'JSONEachRow' })
    return (await result.json<{ id: number }>()).map(({ id }) => id)
  }

  /** Returns how many granules the index leaves to read, of how many. */
  async function granules(orderId: string): Promise<{ read: number; of: number }> {
    const { sql, params } = packedCondition('wanted', { key: 'order.id', value: orderId })
    const query = `EXPLAIN indexes = 1 SELECT count() FROM ${table} WHERE workspace_id = 'ws' AND ${sql}
      SETTINGS use_skip_indexes_on_data_read = 0, use_query_condition_cache = 0`
    const result = await client.query({ query, query_params: params, format: 'JSONEachRow' })
    const lines = (await result.json<{ explain: string }>()).map(({ explain }) => explain.trim())
    const line = lines.slice(lines.indexOf('Name: by_attribute')).find(line => line.startsWith('Granules:'))
    const [read, of] = (line ?? '').slice('Granules: '.length).split('/').map(Number)
    return { read: read ?? Number.NaN, of: of ?? Number.NaN }
  }

  async function insertAsWorker(from: number): Promise<void> {
    const batch = table === 'spans' ? createSpansBatch() : createLogsBatch()
    expect(batch.append(FRAME, BODIES[table](from))).toMatchObject({ ok: true, rows: ROWS })
    const block = batch.tables().find(block => block.table === table)
    if (!block) throw new Error(`no block for ${table}`)
    await insertNative(client, { ...block, deduplicationToken: `${from} ${Math.random()}`, timeoutMs: 20_000 })
  }

  /** Inserts without the settings of a worker, so that the part has the index at once. */
  async function insertWithIndex(): Promise<void> {
    const first = `number % ${ROWS} = 0`
    const time = table === 'logs' ? 'time_unix_nano' : 'start_time_unix_nano'
    const keys = `concat(if(${first}, '131\\0', '13\\0'), 'order.id\\0attempt\\0', if(${first}, 'note\\0', ''))`
    const values = `concat(toString(number), '\\0', toString(number % 5), if(${first}, '\\0', ''))`
    await client.command({
      query: `INSERT INTO ${table} (workspace_id, received_at, ${time}, attribute_keys, attribute_values)
              SELECT 'ws', now64(3), number, ${keys}, ${values} FROM numbers(${2 * ROWS}, ${ROWS})`,
    })
  }
})

/** Requests with an order for each record. The first order has a note without a text. */
const BODIES: Record<Table, (from: number) => Buffer> = {
  spans: from =>
    Buffer.from(
      toBinary(
        ExportTraceServiceRequestSchema,
        create(ExportTraceServiceRequestSchema, {
          resourceSpans: [
            {
              scopeSpans: [
                {
                  spans: orders(from, attributes => ({
                    traceId: crypto.getRandomValues(new Uint8Array(16)),
                    spanId: crypto.getRandomValues(new Uint8Array(8)),
                    attributes,
                  })),
                },
              ],
            },
          ],
        }),
      ),
    ),
  logs: from =>
    Buffer.from(
      toBinary(
        ExportLogsServiceRequestSchema,
        create(ExportLogsServiceRequestSchema, {
          resourceLogs: [{ scopeLogs: [{ logRecords: orders(from, attributes => ({ attributes })) }] }],
        }),
      ),
    ),
}

type Attributes = MessageInitShape<typeof KeyValueSchema>[]

function orders<T>(from: number, record: (attributes: Attributes) => T): T[] {
  return Array.from({ length: ROWS }, (_, i) =>
    record([
      text('order.id', String(from + i)),
      { key: 'attempt', value: { value: { case: 'intValue', value: BigInt((from + i) % 5) } } },
      ...(i === 0 ? [text('note', ''), text('it’s "quoted" \\ \0', 'it’s "quoted" \\ \0')] : []),
    ]),
  )
}

function text(key: string, value: string): Attributes[number] {
  return { key, value: { value: { case: 'stringValue', value } } }
}
