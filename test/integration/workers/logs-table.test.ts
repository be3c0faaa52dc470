import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, insertNative } from '../../../clickhouse/client.ts'
import { TYPES } from '../../../clickhouse/queries/attributes/attribute-columns.ts'
import { selectLogs, selectLogTimes } from '../../../clickhouse/queries/logs/select-logs.ts'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import type { LogRecordSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/logs/v1/logs_pb.js'
import { DAY_MS } from '../../../schemas/units.ts'
import { createLogsBatch } from '../../../workers/otlp/logs/logs.ts'
import { rounds } from '../../support/length.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { expectedLogTables } from '../../support/oracles/logs-oracle.ts'
import { type NativeValue, readBlock, rowsOf } from '../../support/oracles/read-block.ts'
import { readTables } from '../../support/oracles/read-tables.ts'
import { wholeRow } from '../../support/oracles/whole-row.ts'
import { withExceptions } from '../../support/oracles/with-exceptions.ts'
import { logsRequest } from '../../support/payloads/otlp-logs.ts'
import { scrambleMessage, seededRandom } from '../../support/payloads/scramble-message.ts'
import { distantUrl } from '../../support/services/distant-url.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

type Row = Record<string, NativeValue>
type RecordInit = MessageInitShape<typeof LogRecordSchema>

const DATABASE = `logs_table_${process.pid}`
/** Messages whose rows are read back from ClickHouse; the rows of all messages are read from the blocks. */
const STORED_MESSAGES = 2_000
/** Messages whose records are read as the API reads them. */
const READ_MESSAGES = 400
const MESSAGES = rounds(8_000)
const ORIGINS = Array.from({ length: 3 }, (_, i) => ({
  workspaceId: `ws_${i}`,
  surfaceId: `srf_${i}`,
  receivedAtMs: Date.now() - i * DAY_MS + i,
}))
const ORIGIN = ORIGINS[0] as (typeof ORIGINS)[0]

const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })
const body = (value: string) => ({ body: { value: { case: 'stringValue' as const, value } } })

function payload(logRecords: RecordInit[], service = 'shop'): Buffer {
  const request = create(ExportLogsServiceRequestSchema, {
    resourceLogs: [{ resource: { attributes: [text('service.name', service)] }, scopeLogs: [{ logRecords }] }],
  })
  return Buffer.from(toBinary(ExportLogsServiceRequestSchema, request))
}

describe('the table of logs', () => {
  const { clickhouseUrl } = sharedServices()
  const batch = withExceptions(createLogsBatch())
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
    for (const table of ['logs', 'exceptions', 'findings', 'finding_buckets']) {
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
    const { stream } = await client.exec({
      query: `SELECT * EXCEPT stored_at FROM ${table} ORDER BY trace_id LIMIT 60000 FORMAT Native`,
    })
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    return rowsOf(readBlock(Buffer.concat(chunks))).map(wholeRow)
  }

  it(`contains every value of ${STORED_MESSAGES} random messages`, async () => {
    const expected: { logs: Row[]; exceptions: Row[] } = { logs: [], exceptions: [] }
    for (const [i, request] of fc.sample(logsRequest, STORED_MESSAGES).entries()) {
      const origin = ORIGINS[i % ORIGINS.length] as (typeof ORIGINS)[0]
      const bytes = Buffer.from(toBinary(ExportLogsServiceRequestSchema, request))
      const result = batch.append(origin as never, bytes)
      expect(result.ok || result.reason).toBeOneOf([true, 'no_records'])
      const { logs, exceptions } = expectedLogTables(origin, request)
      expected.logs.push(...logs)
      expected.exceptions.push(...exceptions)
    }
    await insert()
    for (const table of ['logs', 'exceptions'] as const) {
      expect(expected[table].length).toBeGreaterThan(100)
      expect(inOrder(await selectNative(table))).toEqual(inOrder(expected[table]))
    }
  })

  it('is read with every value of random records, whole and cut', async () => {
    const expected: ReturnType<typeof shownOf>[] = []
    for (const request of fc.sample(logsRequest, READ_MESSAGES)) {
      batch.append(ORIGIN as never, Buffer.from(toBinary(ExportLogsServiceRequestSchema, request)))
      expected.push(...expectedLogTables(ORIGIN, request).logs.map(shownOf))
    }
    await insert()
    const times = await select<{ nanos: string }>('SELECT DISTINCT toUnixTimestamp64Nano(timestamp) AS nanos FROM logs')
    const page = { filter: { ...ALL, workspaceId: ORIGIN.workspaceId }, times: times.map(({ nanos }) => nanos) }
    for (const isCut of [false, true]) {
      const rows = await selectLogs(
        client,
        { ...page, atMost: undefined, offset: 0, limit: expected.length + 1 },
        { isCut },
        AbortSignal.timeout(20_000),
      )
      const shown = rows.map(({ nanos: _, receivedMs: __, digest: ___, surfaceId: ____, ...row }) => row)
      const wanted = isCut ? expected.map(cutOf) : expected
      expect(inOrder(shown as never)).toEqual(inOrder(wanted as never))
    }
  })

  it('contains a batch once, however often its insert is repeated', async () => {
    batch.append(ORIGIN as never, payload([{ attributes: [text('exception.type', 'E')] }, body('b')]))
    for (let repeat = 0; repeat < 3; repeat++) await insert('the same batch')
    expect(await select('SELECT count() AS n FROM logs')).toEqual([{ n: '2' }])
    expect(await select('SELECT count() AS n FROM exceptions')).toEqual([{ n: '1' }])
    expect(await select('SELECT sum(occurrence_count) AS n FROM findings')).toEqual([{ n: '1' }])
  })

  it('returns the values that were sent', async () => {
    const origin = { ...ORIGIN, receivedAtMs: Date.parse('2026-11-20T12:00:00.123Z') }
    const record: RecordInit = {
      timeUnixNano: 1_795_176_000_123_456_789n,
      observedTimeUnixNano: 2n ** 64n - 1n,
      severityNumber: 17,
      severityText: 'Error',
      body: { value: { case: 'kvlistValue', value: { values: [text('msg', 'é 日本 👩‍🚀 "\\')] } } },
      attributes: [text('session.id', 's1'), { key: 'n', value: { value: { case: 'intValue', value: -(2n ** 63n) } } }],
      droppedAttributesCount: 2 ** 32 - 1,
      flags: 2 ** 32 - 1,
      traceId: Buffer.from('0102030405060708090a0b0c0d0e0f10', 'hex'),
      spanId: Buffer.from('fffefdfcfbfaf9f8', 'hex'),
      eventName: 'order.failed',
    }
    batch.append(origin as never, payload([record]))
    await insert()
    const [row] = await select<Record<string, unknown>>(
      'SELECT * REPLACE (hex(trace_id) AS trace_id, hex(span_id) AS span_id) FROM logs',
    )
    expect(wholeRow(row as Row)).toMatchObject({
      received_at: '2026-11-20 12:00:00.123',
      service_name: 'shop',
      timestamp: '2026-11-20 12:00:00.123456789',
      time_unix_nano: '1795176000123456789',
      observed_time_unix_nano: '18446744073709551615',
      severity_number: 17,
      severity_text: 'Error',
      body: '{"msg":"é 日本 👩‍🚀 \\"\\\\"}',
      body_type: 'kvlist',
      attributes: [
        ['session.id', 's1'],
        ['n', '-9223372036854775808'],
      ],
      attribute_types: [1, 3],
      dropped_attributes_count: 4_294_967_295,
      flags: 4_294_967_295,
      trace_id: '0102030405060708090A0B0C0D0E0F10',
      span_id: 'FFFEFDFCFBFAF9F8',
      event_name: 'order.failed',
      session_id: 's1',
    })
  })

  it('finds a record by the session of its resource, in merged parts too', async () => {
    const request = create(ExportLogsServiceRequestSchema, {
      resourceLogs: [
        { resource: { attributes: [text('session.id', 'of the resource')] }, scopeLogs: [{ logRecords: [body('b')] }] },
      ],
    })
    batch.append(ORIGIN as never, Buffer.from(toBinary(ExportLogsServiceRequestSchema, request)))
    await insert()
    await client.command({ query: 'OPTIMIZE TABLE logs FINAL' })
    const filter = { ...ALL, workspaceId: ORIGIN.workspaceId, sessionId: 'of the resource' }
    const window = { since: undefined, before: undefined, limit: 9 }
    const limits = { rows: 1_000, bytes: 1_000_000 }
    expect(await selectLogTimes(client, filter, window, limits, AbortSignal.timeout(20_000))).toHaveLength(1)
  })

  it('keeps invalid UTF-8 as it was sent, and finds words next to it', async () => {
    const bytes = payload([body('XXXX needle')])
    bytes.write('\xff\x00\xc3X', bytes.indexOf('XXXX'), 'latin1')
    batch.append(ORIGIN as never, bytes)
    await insert()
    expect(await select("SELECT hex(left(body, 4)) AS head FROM logs WHERE hasToken(lower(body), 'needle')")).toEqual([
      { head: 'FF00C358' },
    ])
  })

  it('finds bodies by their words in any case, and a trace, without reading the rest', async () => {
    for (let i = 0; i < 60; i++) {
      const records = Array.from({ length: 1_000 }, (_, j) => ({
        ...body(`Order ${i * 1_000 + j} was shipped to customer c${j}`),
        traceId: Buffer.from(`trace ${String(i).padStart(10, '0')}`),
        timeUnixNano: BigInt(ORIGIN.receivedAtMs) * 1_000_000n + BigInt(i * 1_000 + j),
      }))
      if (i === 30) Object.assign(records[500] as object, body('Kernel: "PANIC-42" at shutdown'))
      batch.append(ORIGIN as never, payload(records))
    }
    await insert()
    // The first merge builds the filter of words.
    await client.command({ query: 'OPTIMIZE TABLE logs FINAL' })

    const panic =
      "FROM logs WHERE workspace_id = 'ws_0' AND hasToken(lower(body), 'panic') AND hasToken(lower(body), 'kernel')"
    expect(await select(`SELECT body ${panic}`)).toEqual([{ body: 'Kernel: "PANIC-42" at shutdown' }])
    expect(await granules(`SELECT body ${panic}`, 'logs_by_token')).toEqual({ isPruned: true, left: 1 })
    expect(
      await select("SELECT count() AS n FROM logs WHERE hasToken(lower(body), 'c7') OR hasToken(lower(body), 'c8')"),
    ).toEqual([{ n: '120' }])
    expect(await select("SELECT count() AS n FROM logs WHERE hasToken(lower(body), 'ship')")).toEqual([{ n: '0' }])

    const trace = `FROM logs WHERE workspace_id = 'ws_0' AND trace_id = 'trace ${'3'.padStart(10, '0')}'`
    expect(await select(`SELECT count() AS n ${trace}`)).toEqual([{ n: '1000' }])
    expect(await granules(`SELECT body ${trace}`, 'logs_by_trace')).toEqual({ isPruned: true, left: 1 })
  })

  /** Returns how many granules an index selects, and out of how many. */
  async function granules(query: string, index: string): Promise<{ isPruned: boolean; left: number }> {
    // EXPLAIN does not show decisions that are made while reading.
    const plan = await select<{ explain: string }>(
      `EXPLAIN indexes = 1 ${query} SETTINGS use_skip_indexes_on_data_read = 0`,
    )
    const lines = plan.map(row => row.explain.trim())
    const found = lines.slice(lines.indexOf(`Name: ${index}`)).find(line => line.startsWith('Granules:'))
    const [, left, total] = /(\d+)\/(\d+)/.exec(found ?? '') ?? []
    return { isPruned: Number(total) > 5, left: Number(left) }
  }

  it(`has the rows of ${MESSAGES} random messages, in any of their encodings`, () => {
    fc.assert(
      fc.property(logsRequest, fc.nat(), (request, seed) => {
        const plain = toBinary(ExportLogsServiceRequestSchema, request)
        const { logs, exceptions } = expectedLogTables(ORIGIN, request)
        batch.reset()
        const bytes = scrambleMessage(plain, ExportLogsServiceRequestSchema, seededRandom(seed))
        batch.append(ORIGIN as never, Buffer.from(bytes))
        const tables = readTables(batch)
        expect(tables.get('logs') ?? []).toEqual(logs)
        expect(tables.get('exceptions') ?? []).toEqual(exceptions)
      }),
      { numRuns: MESSAGES },
    )
  }, 180_000)
})

/** Selects all records of a workspace. */
const ALL = {
  ...{ traceId: undefined, spanId: undefined, sessionId: undefined, serviceName: undefined },
  ...{ minSeverityNumber: undefined, words: [], attributes: [], fromMs: undefined, toMs: undefined },
}

/** Returns what a read shows of an expected row. */
function shownOf(row: Row) {
  const text = (value: NativeValue | undefined) => Buffer.from(String(value), 'latin1').toString()
  const pairs = row.attributes as [string, string][]
  return {
    ...{ serviceName: text(row.service_name), serviceVersion: text(row.service_version) },
    ...{ resourceJson: text(row.resource), resourceDroppedAttributesCount: row.resource_dropped_attributes_count },
    ...{ resourceSchemaUrl: text(row.resource_schema_url), scopeName: text(row.scope_name) },
    ...{ scopeVersion: text(row.scope_version), scopeAttributes: text(row.scope_attributes) },
    ...{ scopeSchemaUrl: text(row.scope_schema_url), scopeDroppedAttributesCount: row.scope_dropped_attributes_count },
    ...{ timeUnixNano: String(row.time_unix_nano), observedTimeUnixNano: String(row.observed_time_unix_nano) },
    ...{ severityNumber: row.severity_number, severityText: text(row.severity_text), bodyText: text(row.body) },
    ...{ bodyType: TYPES[row.body_type as number], droppedAttributesCount: row.dropped_attributes_count },
    attributeColumns: [
      pairs.map(([key]) => text(key)),
      pairs.map(([, value]) => text(value)),
      (row.attribute_types as number[]).map(type => TYPES[type]),
    ] as const,
    ...{ flags: row.flags, traceId: row.trace_id, spanId: row.span_id, eventName: text(row.event_name) },
    sessionId: text(row.session_id),
  }
}

/** Returns what is shown of a record whose texts are cut. */
function cutOf({
  severityText,
  eventName,
  attributeColumns: [keys, values, types],
  ...row
}: ReturnType<typeof shownOf>) {
  const cut = (text: string) => [...text].slice(0, 1_024).join('')
  const columns = [keys.map(cut), values.map(cut), types]
  return { ...row, severityText: cut(severityText), eventName: cut(eventName), attributeColumns: columns }
}

/** Sorts rows by their values alone. */
function inOrder(rows: Row[]): Row[] {
  const json = (row: Row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  return rows
    .map((row): [string, Row] => [json(Object.fromEntries(Object.entries(row).sort())), row])
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row)
}
