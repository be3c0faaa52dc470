import { constants, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../../clickhouse/client.ts'
import { type Trace, type TraceColumns, traceSchema } from '../../../../schemas/http/traces/schemas.ts'
import { DAY_MS, MIB } from '../../../../schemas/units.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  START,
  type StoredSpan,
  signToken,
} from '../../../support/services/api.ts'
import { type MeasuredApi, startMeasuredApi } from '../../../support/services/measured-api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const DATABASE = `api_trace_scale_${process.pid}`
const FINDING = `fnd_${'a'.repeat(26)}`
const MB = 1_000_000

/** SQL expressions of `number`; `startNanos` continues the one of the start. */
type SpanColumns = Partial<Record<'parent' | 'status' | 'name' | 'startNanos' | 'durationNanos', string>>

/** Starts the API as a separate process, so that its memory can be measured. */
describe('traces of any shape and size', () => {
  const services = sharedServices()
  let client: ClickHouseClient
  let api: MeasuredApi
  let token: string
  let traces = 0

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    token = await signToken()
    const stores = { ...services, database: DATABASE }
    api = await startMeasuredApi(stores, {
      // This test measures memory, so a busy machine may take longer.
      API_QUERY_TIMEOUT_MS: '30000',
    })
  })
  afterAll(async () => {
    await api?.stop(2_000)
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  it('are returned when children start before their parents and spans end before they start', async () => {
    const traceId = await store([
      { spanId: id(1), startTimeUnixNano: START + 1_000n, endTimeUnixNano: START + 2_000n },
      { spanId: id(2), parentSpanId: id(1), startTimeUnixNano: START, endTimeUnixNano: START + 500n },
      { spanId: id(3), parentSpanId: id(2), startTimeUnixNano: START + 3_000n, endTimeUnixNano: START + 10n },
    ])
    const trace = await read(traceId)
    expect(trace.spans).toMatchObject([
      { spanId: id(2), parentSpanId: id(1) },
      { spanId: id(1) },
      {
        spanId: id(3),
        parentSpanId: id(2),
        startTimeUnixNano: String(START + 3_000n),
        endTimeUnixNano: String(START + 10n),
        durationMs: 0,
      },
    ])
    expect(trace).toMatchObject({
      rootCount: 1,
      danglingParentCount: 0,
      startedAtUnixNano: String(START),
      endedAtUnixNano: String(START + 3_000n),
      wallDurationMs: 0.003,
    })
  })

  it('include the spans of every surface and service, whenever they arrived', async () => {
    const now = Date.now()
    const traceId = await store([
      { spanId: id(1), surfaceId: 'srf_web', serviceName: 'web', receivedAt: now - 2 * DAY_MS },
      { spanId: id(2), parentSpanId: id(1), surfaceId: 'srf_api', serviceName: 'api', receivedAt: now },
      { spanId: id(2), parentSpanId: id(1), surfaceId: 'srf_web', serviceName: 'api', receivedAt: now + 1 },
    ])
    await insertSpans(client, [{ traceId, spanId: id(3), parentSpanId: id(2), receivedAt: now - DAY_MS }])
    const { spans, truncated } = await read(traceId)
    expect(spans).toMatchObject([
      { serviceName: 'web', occurrenceCount: 1 },
      { serviceName: 'api', occurrenceCount: 2 },
      { spanId: id(3), parentSpanId: id(2) },
    ])
    expect(truncated).toBe(false)
  })

  it('are returned when 100,000 spans form cycles and chains or are their own parents', async () => {
    // A ring of 50,000 spans, 20,000 that are their own parents, and a chain of 29,999 under the only root that ends in an error.
    const parent = `multiIf(number <= 50000, number % 50000 + 1, number <= 70000, number, number = 70001, 0, number - 1)`
    const traceId = await storeMany(100_000, { parent, status: 'if(number IN (7, 100000), 2, 0)' })
    const trace = await read(traceId)
    expect(trace).toMatchObject({ rootCount: 1, danglingParentCount: 0, truncated: true })
    expect(trace.spans).toHaveLength(2_000)
    const shown = new Set(trace.spans.map(({ spanId }) => spanId))
    for (const number of [70_001, 7, 100_000, 99_999]) expect(shown.has(id(number))).toBe(true)
    const few = await read(traceId, '?limit=3')
    expect(few.spans.map(({ spanId }) => spanId)).toEqual([id(7), id(8), id(70_001)])
  })

  it('need no more memory for many large traces requested at once than for a few', async () => {
    const traceIds: string[] = []
    const parent = 'intDiv(number, 10)'
    const name = "concat('GET /api/resource-', toString(number % 50), '/:id of a service with a long name')"
    for (let i = 0; i < 3; i++) traceIds.push(await storeMany(100_000, { parent, name }))
    // Each trace has few spans with texts of 0.7 MB, almost as much as a response may have.
    for (let i = 0; i < 2; i++) {
      traceIds.push(await storeMany(10, { parent, name: "concat(toString(number), repeat('xxxxxxx', 100000))" }))
    }
    const readAll = async (times: number) => {
      const asked = Array.from({ length: times }, () => traceIds).flat()
      for (const trace of await Promise.all(asked.map(traceId => read(traceId))))
        expect(trace.spans.length).toBeGreaterThan(6)
    }
    await readAll(1)
    const few = await api.peakDuring(() => readAll(1))
    const many = await api.peakDuring(() => readAll(4))
    expect(many).toBeLessThan(400 * MB)
    expect(many - few).toBeLessThan(200 * MB)
  })

  it('fit into a small container when as many as the API reads at once are as large as one query returns', async () => {
    const traceIds: string[] = []
    // Many spans, or long texts. Both are just below the limit of a result.
    for (const [count, nameBytes] of [
      [7_500, 150],
      [950, 2_000],
    ] as const) {
      const name = `concat(toString(number), repeat('x', ${nameBytes}))`
      traceIds.push(await storeMany(count, { parent: 'intDiv(number, 10)', name }))
    }
    const readAll = () =>
      Promise.all(
        Array.from({ length: 64 }, async (_, i) => {
          const trace = await read(traceIds[i % traceIds.length] as string)
          expect(trace.spans.length).toBeGreaterThan(900)
        }),
      )
    await readAll()
    const peak = await api.peakDuring(readAll)
    expect(peak).toBeLessThan(224 * MIB)
  }, 60_000)

  it('are examined whole up to a million spans, in the memory of a small container', async () => {
    // Only the last ten spans are roots, and only the last of them is an error.
    const parent = 'if(number > 999990, 0, number + 1)'
    const traceId = await storeMany(1_000_000, { parent, status: 'if(number = 1000000, 2, 0)' })
    const peak = await api.peakDuring(async () => {
      const trace = await read(traceId)
      expect(trace).toMatchObject({ rootCount: 10, danglingParentCount: 0, truncated: true })
      expect(trace.spans.at(-1)).toMatchObject({ spanId: id(1_000_000), statusCode: 'ERROR' })
    })
    // The container has 256 MiB. The rest is for those pages of the program that are in use.
    expect(peak).toBeLessThan(224 * MIB)
  }, 60_000)

  it('are read as columns up to a million spans, in the memory of a small container', async () => {
    const name = "concat('GET /api/resource-', toString(number % 50), '/:id')"
    const traceId = await storeMany(1_000_000, { parent: 'intDiv(number, 10)', name })
    const peak = await api.peakDuring(async () => {
      const { spanCount, rootCount, truncated, spans } = await readColumns(traceId)
      expect({ spanCount, rootCount, truncated }).toEqual({ spanCount: 1_000_000, rootCount: 9, truncated: false })
      expect(spans.ids.length).toBe(16_000_000)
      expect(spans.parents.slice(9, 12)).toEqual([0, 0, 0])
    })
    expect(peak).toBeLessThan(224 * MIB)
    const plain = await fetch(`${api.baseUrl}/v3/traces/${traceId}`, {
      headers: { authorization: `Bearer ${token}`, 'accept-encoding': 'identity' },
    })
    expect(plain.status).toBe(400)
    expect(await plain.json()).toMatchObject({ message: expect.stringContaining('accept-encoding must include gzip') })
  }, 120_000)

  it('are read as columns of less than nine bytes a span, also if all durations and starts are random', async () => {
    const traceId = await storeMany(100_000, {
      parent: 'intDiv(number, 10)',
      name: "concat('GET /api/resource-', toString(cityHash64(number) % 50), '/:id')",
      durationNanos: 'cityHash64(number, 1) % 50000000',
      startNanos: ' * 1000 + cityHash64(number, 2) % 1000',
    })
    const columns = await readColumns(traceId)
    const withoutIds = { ...columns, spans: { ...columns.spans, ids: '' } }
    const bytes = gzipSync(JSON.stringify(withoutIds), { level: constants.Z_BEST_SPEED }).length
    console.log(`100,000 spans as columns without ids: ${bytes} bytes`)
    expect(bytes).toBeLessThan(0.85 * MB)
    const response = await fetch(`${api.baseUrl}/v3/traces/${traceId}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(Number(response.headers.get('content-length'))).toBeLessThan(bytes + 0.4 * MB)
    await response.arrayBuffer()
  }, 60_000)

  it('are read as columns in part with over a million spans, with the end of the whole', async () => {
    const traceId = await storeMany(1_000_100, { parent: '1' })
    const { completeness, ...trace } = await readColumns(traceId)
    expect(completeness).toMatchObject({ state: 'incomplete', reasons: expect.arrayContaining(['cut']) })
    const { spanCount, truncated, startedAtUnixNano, endedAtUnixNano } = trace
    expect({ spanCount, truncated, startedAtUnixNano, endedAtUnixNano }).toEqual({
      spanCount: 1_000_000,
      truncated: true,
      startedAtUnixNano: String(START + 1n),
      endedAtUnixNano: String(START + 1_001_100n),
    })
  }, 120_000)

  async function readColumns(traceId: string): Promise<TraceColumns> {
    const response = await fetch(`${api.baseUrl}/v3/traces/${traceId}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(response.status).toBe(200)
    return (await response.json()) as TraceColumns
  }

  function nextTraceId(): string {
    return (0xdef_0000 + traces++).toString(16).padStart(32, '0')
  }

  const id = (number: number) => number.toString(16).padStart(16, '0')

  async function store(spans: Omit<StoredSpan, 'traceId'>[]): Promise<string> {
    const traceId = nextTraceId()
    await insertSpans(
      client,
      spans.map(stored => ({ ...stored, traceId })),
    )
    await insertExceptions(client, [{ findingId: FINDING, traceId }])
    return traceId
  }

  /** Inserts spans 1 to `count`, each starting a nanosecond after the one before; SQL expressions of `number` give the rest. */
  async function storeMany(count: number, sql: SpanColumns): Promise<string> {
    const traceId = nextTraceId()
    await client.command({
      query: `INSERT INTO spans (workspace_id, surface_id, received_at, trace_id, span_id, parent_span_id, name, kind,
                service_name, start_time_unix_nano, end_time_unix_nano, status_code)
              SELECT 'ws_1', 'srf_1', now64(3), unhex('${traceId}'), reverse(reinterpretAsFixedString(number)),
                reverse(reinterpretAsFixedString(toUInt64(${sql.parent ?? 0}))), ${sql.name ?? "concat('n', toString(number))"}, 1,
                'shop', ${START} + number${sql.startNanos ?? ''} AS start, start + ${sql.durationNanos ?? 1000}, ${sql.status ?? '0'}
              FROM numbers(1, ${count})`,
      clickhouse_settings: { async_insert: 0 },
    })
    await insertExceptions(client, [{ findingId: FINDING, traceId }])
    return traceId
  }

  async function read(traceId: string, query = ''): Promise<Trace> {
    const response = await fetch(`${api.baseUrl}/v3/findings/${FINDING}/traces/${traceId}${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const text = await response.text()
    expect({ status: response.status, text: text.slice(0, 200) }).toMatchObject({ status: 200 })
    return traceSchema.parse(JSON.parse(text))
  }
})
