import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, insertNative } from '../../../clickhouse/client.ts'
import { attributeOf } from '../../../clickhouse/queries/attributes/packed-attributes.ts'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { KeyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import { DAY_MS } from '../../../schemas/units.ts'
import { createSpansBatch } from '../../../workers/otlp/traces/spans.ts'
import { rounds } from '../../support/length.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { expectedTables } from '../../support/oracles/otlp-oracle.ts'
import { type NativeValue, readBlock, rowsOf } from '../../support/oracles/read-block.ts'
import { readTables } from '../../support/oracles/read-tables.ts'
import { wholeRow } from '../../support/oracles/whole-row.ts'
import { withExceptions } from '../../support/oracles/with-exceptions.ts'
import { traceRequest } from '../../support/payloads/otlp-traces.ts'
import { scrambleMessage, seededRandom } from '../../support/payloads/scramble-message.ts'
import { distantUrl } from '../../support/services/distant-url.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

type Row = Record<string, NativeValue>

const DATABASE = `spans_table_${process.pid}`
/** Messages whose rows are read back from ClickHouse; the rows of all messages are read from the blocks. */
const STORED_MESSAGES = 2_000
const MESSAGES = rounds(8_000)
/** Three workspaces, each with payloads of a different day. */
const originOf = (i: number) => ({
  workspaceId: `ws_${i % 3}`,
  surfaceId: `srf_${i % 3}`,
  receivedAtMs: NOW - (i % 3) * DAY_MS + (i % 3),
})
/** Times within the retention; older rows would be removed at once. */
const NOW = Date.now()

describe('the tables of spans and exceptions', () => {
  const { clickhouseUrl } = sharedServices()
  const batch = withExceptions(createSpansBatch())
  let client: ClickHouseClient
  let token = 0

  beforeAll(async () => {
    const connection = { url: distantUrl(clickhouseUrl) }
    const admin = createClickHouse(connection)
    await migrateQuickly(admin, { database: DATABASE, retentionDays: 30, logger: pino({ level: 'silent' }) })
    await admin.close()
    client = createClickHouse({ ...connection, database: DATABASE })
  })
  beforeEach(async () => {
    batch.reset()
    for (const table of ['spans', 'exceptions', 'failures', 'findings', 'finding_buckets', 'session_traces']) {
      await client.command({ query: `TRUNCATE TABLE ${table}` })
    }
  })
  afterAll(async () => {
    await client?.command({ query: `DROP DATABASE ${DATABASE} SYNC` })
    await client?.close()
  })

  async function insert(deduplicationToken = `token ${token++}`): Promise<void> {
    for (const block of batch.tables()) {
      await insertNative(client, {
        ...block,
        deduplicationToken: `${deduplicationToken} ${block.table}`,
        timeoutMs: 20_000,
      })
    }
  }

  async function select<T>(query: string): Promise<T[]> {
    const settings = { output_format_json_quote_64bit_integers: 1 } as const
    const result = await client.query({ query, format: 'JSONEachRow', clickhouse_settings: settings })
    return result.json<T>()
  }

  /** Reads rows as bytes, because JSON cannot represent invalid UTF-8; without the time of the insert, which ClickHouse adds. */
  async function selectNative(table: string): Promise<Row[]> {
    const columns = table === 'spans' ? '*' : '* EXCEPT stored_at'
    const { stream } = await client.exec({
      query: `SELECT ${columns} FROM ${table} ORDER BY trace_id LIMIT 60000 FORMAT Native`,
    })
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    return rowsOf(readBlock(Buffer.concat(chunks))).map(wholeRow)
  }

  it(`contain every value of ${STORED_MESSAGES} random messages`, async () => {
    const expected: Record<'spans' | 'exceptions' | 'failures', Row[]> = { spans: [], exceptions: [], failures: [] }
    for (const [i, request] of fc.sample(traceRequest, STORED_MESSAGES).entries()) {
      const origin = originOf(i)
      const body = Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
      const result = batch.append(origin, body)
      expect(result.ok || result.reason).toBeOneOf([true, 'no_records'])
      const { spans, exceptions, failures } = expectedTables(origin, request)
      expected.spans.push(...spans)
      expected.exceptions.push(...exceptions)
      expected.failures.push(...failures)
    }
    await insert()
    for (const table of ['spans', 'exceptions', 'failures'] as const) {
      expect(expected[table].length).toBeGreaterThan(100)
      expect(inOrder(await selectNative(table))).toEqual(inOrder(expected[table]))
    }
  })

  it('count every occurrence of a finding once, however often its insert is repeated', async () => {
    for (const [i, request] of fc.sample(traceRequest, 300).entries()) {
      batch.append(originOf(i), Buffer.from(toBinary(ExportTraceServiceRequestSchema, request)))
    }
    const exceptions = readTables(batch).get('exceptions') ?? []
    expect(exceptions.length).toBeGreaterThan(50)
    for (let repeat = 0; repeat < 3; repeat++) await insert('the same batch')
    await insert('another batch')

    const count = async (query: string) => Number((await select<{ n: string }>(query))[0]?.n)
    expect(await count('SELECT count() AS n FROM exceptions')).toBe(2 * exceptions.length)
    expect(await count('SELECT count() AS n FROM spans')).toBe(2 * batch.rows)
    expect(await count('SELECT sum(occurrence_count) AS n FROM findings')).toBe(2 * exceptions.length)
    expect(await count('SELECT sum(occurrence_count) AS n FROM finding_buckets')).toBe(2 * exceptions.length)
    const findings = await select<{ id: string; workspace: string; n: string; last: string; message: string }>(
      `SELECT lower(hex(variant_id)) AS id, workspace_id AS workspace, sum(occurrence_count) AS n,
              max(last_seen_unix_nano) AS last, hex(max(latest).message) AS message
       FROM findings GROUP BY id, workspace`,
    )
    const latest = await select<{ id: string; workspace: string; message: string }>(
      `SELECT DISTINCT lower(hex(variant_id)) AS id, workspace_id AS workspace, hex(leftUTF8(message, 1000)) AS message
       FROM exceptions WHERE (workspace_id, variant_id, stored_at, received_at) IN (
         SELECT workspace_id, variant_id, max(tuple(stored_at, received_at)).1, max(tuple(stored_at, received_at)).2
         FROM exceptions GROUP BY workspace_id, variant_id)`,
    )
    for (const { id, workspace, n, last, message } of findings) {
      const own = exceptions.filter(row => row.variant_id === id && row.workspace_id === workspace)
      expect(Number(n)).toBe(2 * own.length)
      expect(own.every(row => seenAt(row) <= BigInt(last))).toBe(true)
      expect(latest).toContainEqual({ id, workspace, message })
    }
  })

  it('cut the texts of keys and keep the whole attributes', async () => {
    const long = '日'.repeat(1_000)
    const noSession = '日'.repeat(1_025)
    const attribute = (key: string, value = long) => ({
      key,
      value: { value: { case: 'stringValue' as const, value } },
    })
    const request = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: { attributes: [attribute('service.name'), attribute('service.version')] },
          scopeSpans: [
            {
              spans: [
                {
                  traceId: Buffer.alloc(16, 1),
                  spanId: Buffer.alloc(8, 1),
                  status: { code: 2 },
                  attributes: [
                    attribute('session.id', noSession),
                    attribute('http.route'),
                    attribute('http.status_code', '0'),
                  ],
                },
              ],
            },
          ],
        },
      ],
    })
    batch.append(originOf(0), Buffer.from(toBinary(ExportTraceServiceRequestSchema, request)))
    await insert()
    const bytes = (text: string) => Buffer.from(text).toString('latin1')
    const [row] = await selectNative('spans')
    expect(row).toMatchObject({
      service_name: bytes('日'.repeat(341)),
      service_version: bytes('日'.repeat(85)),
      session_id: '',
      http_route: bytes('日'.repeat(341)),
      http_status_code: 65_535,
      attributes: expect.arrayContaining([
        ['http.route', bytes(long)],
        ['session.id', bytes(noSession)],
      ]),
    })
    expect(JSON.parse(String(row?.resource))).toMatchObject({ 'service.version': bytes(long) })
    expect(await select('SELECT service_version AS version, service_name AS name FROM failures')).toEqual([
      { version: '日'.repeat(85), name: '日'.repeat(341) },
    ])
    expect(await select('SELECT session_id FROM session_traces')).toEqual([])
  })

  it('show the last occurrence that was received, after one whose time is far in the future', async () => {
    const at = (timeUnixNano: bigint, message: string) =>
      create(ExportTraceServiceRequestSchema, {
        resourceSpans: [
          {
            scopeSpans: [
              {
                spans: [
                  {
                    traceId: Buffer.alloc(16, 1),
                    spanId: Buffer.alloc(8, 1),
                    events: [
                      {
                        name: 'exception',
                        timeUnixNano,
                        attributes: [
                          { key: 'exception.message', value: { value: { case: 'stringValue', value: message } } },
                          {
                            key: 'exception.stacktrace',
                            value: { value: { case: 'stringValue', value: 'at f (a.js:1:1)' } },
                          },
                        ],
                      },
                    ],
                  },
                ],
              },
            ],
          },
        ],
      })
    const origin = originOf(0)
    const tenMinutesLater = { ...origin, receivedAtMs: origin.receivedAtMs + 600_000 }
    const nano = (ms: number) => BigInt(ms) * 1_000_000n
    const send = (source: typeof origin, time: bigint, message: string) =>
      batch.append(source, Buffer.from(toBinary(ExportTraceServiceRequestSchema, at(time, message))))
    send(origin, 2n ** 64n - 1n, 'pinned')
    send(tenMinutesLater, nano(tenMinutesLater.receivedAtMs), 'real')
    await insert()
    expect(
      await select(
        'SELECT max(latest).message AS message, max(last_seen_unix_nano) AS last FROM findings GROUP BY variant_id',
      ),
    ).toEqual([{ message: 'real', last: String(nano(tenMinutesLater.receivedAtMs)) }])
  })

  it('return the values that were sent', async () => {
    const attributes: MessageInitShape<typeof KeyValueSchema>[] = [
      { key: 'text', value: { value: { case: 'stringValue', value: 'é 日本 👩‍🚀 "\\' } } },
      { key: 'int', value: { value: { case: 'intValue', value: -(2n ** 63n) } } },
      {
        key: 'list',
        value: { value: { case: 'arrayValue', value: { values: [{ value: { case: 'boolValue', value: true } }] } } },
      },
    ]
    const request = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: { attributes, droppedAttributesCount: 2 ** 32 - 1 },
          scopeSpans: [
            {
              spans: [
                {
                  traceId: Buffer.from('0102030405060708090a0b0c0d0e0f10', 'hex'),
                  spanId: Buffer.from('fffefdfcfbfaf9f8', 'hex'),
                  name: 'é 日本',
                  startTimeUnixNano: 2n ** 64n - 1n,
                  attributes,
                  events: [{ name: 'first', timeUnixNano: 2n ** 64n - 1n, attributes }, { name: 'second' }],
                  links: [{ traceId: Buffer.from('not an id'), attributes, flags: 2 ** 32 - 1 }],
                },
              ],
            },
          ],
        },
      ],
    })
    const origin = originOf(0)
    batch.append(origin, Buffer.from(toBinary(ExportTraceServiceRequestSchema, request)))
    await insert()
    const bytes = (text: string) => Buffer.from(text).toString('latin1')
    const stored = {
      attributes: [
        ['text', bytes('é 日本 👩‍🚀 "\\')],
        ['int', '-9223372036854775808'],
        ['list', '[true]'],
      ],
      attribute_types: [1, 3, 5],
    }
    expect(await selectNative('spans')).toMatchObject([
      {
        received_at: BigInt(NOW),
        resource: bytes('{"int":-9223372036854775808,"list":[true],"text":"é 日本 👩‍🚀 \\"\\\\"}'),
        resource_dropped_attributes_count: 4_294_967_295,
        trace_id: '0102030405060708090a0b0c0d0e0f10',
        span_id: 'fffefdfcfbfaf9f8',
        name: bytes('é 日本'),
        start_time_unix_nano: 2n ** 64n - 1n,
        ...stored,
        events: [
          { name: 'first', time_unix_nano: 2n ** 64n - 1n, ...stored },
          { name: 'second', attributes: [], attribute_types: [] },
        ],
        links: [{ trace_id: 'not an id', span_id: '', flags: 4_294_967_295, ...stored }],
      },
    ])
    const value = attributeOf("'\\0int\\0'").value
    expect(await select(`SELECT ${value} AS int FROM spans`)).toEqual([{ int: '-9223372036854775808' }])
  })

  it('keep invalid UTF-8 as it was sent', async () => {
    const request = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        { scopeSpans: [{ spans: [{ traceId: Buffer.alloc(16, 1), spanId: Buffer.alloc(8, 1), name: 'XXXX' }] }] },
      ],
    })
    const body = Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
    body.write('\xff\x00\xc3X', body.indexOf('XXXX'), 'latin1')
    batch.append(originOf(0), body)
    await insert()
    expect(await select('SELECT hex(name) AS name FROM spans')).toEqual([{ name: 'FF00C358' }])
  })

  it(`have the rows of ${MESSAGES} random messages, in any of their encodings`, () => {
    const origin = originOf(0)
    fc.assert(
      fc.property(traceRequest, fc.nat(), (request, seed) => {
        const plain = toBinary(ExportTraceServiceRequestSchema, request)
        const { spans, exceptions, failures } = expectedTables(origin, request)
        batch.reset()
        batch.append(
          origin as never,
          Buffer.from(scrambleMessage(plain, ExportTraceServiceRequestSchema, seededRandom(seed))),
        )
        const tables = readTables(batch)
        expect(tables.get('spans') ?? []).toEqual(spans)
        expect(tables.get('exceptions') ?? []).toEqual(exceptions)
        expect(tables.get('failures') ?? []).toEqual(failures)
      }),
      { numRuns: MESSAGES },
    )
  }, 180_000)
})

/** Returns the time of an occurrence that counts: at most five minutes after its arrival. */
function seenAt(row: Row): bigint {
  const stated = row.occurred_at_unix_nano as bigint
  const latest = ((row.received_at as bigint) + 300_000n) * 1_000_000n
  return stated < latest ? stated : latest
}

/** Sorts rows by their values alone. */
function inOrder(rows: Row[]): Row[] {
  const text = (row: Row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  return rows
    .map((row): [string, Row] => [text(Object.fromEntries(Object.entries(row).sort())), row])
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row)
}
