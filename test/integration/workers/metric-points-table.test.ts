import { create, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, insertNative } from '../../../clickhouse/client.ts'
import { attributeText, keyPattern } from '../../../clickhouse/queries/attributes/attribute-text.ts'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { DAY_MS, HOUR_S } from '../../../schemas/units.ts'
import { createMetricsBatch } from '../../../workers/otlp/metrics/metrics.ts'
import { rounds } from '../../support/length.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { expectedPoints } from '../../support/oracles/metrics-oracle.ts'
import { type NativeValue, readBlock, rowsOf } from '../../support/oracles/read-block.ts'
import { readTables } from '../../support/oracles/read-tables.ts'
import { unpackMessage } from '../../support/oracles/unpack-message.ts'
import { wholeRow } from '../../support/oracles/whole-row.ts'
import { metricsRequest } from '../../support/payloads/otlp-metrics.ts'
import { scrambleMessage, seededRandom } from '../../support/payloads/scramble-message.ts'
import { distantUrl } from '../../support/services/distant-url.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

type Row = Record<string, NativeValue>

const DATABASE = `metric_points_table_${process.pid}`
/** Messages whose rows are read back from ClickHouse; the rows of all messages are read from the blocks. */
const STORED_MESSAGES = 2_000
const MESSAGES = rounds(8_000)
const ORIGINS = Array.from({ length: 3 }, (_, i) => ({
  workspaceId: `ws_${i}`,
  surfaceId: `srf_${i}`,
  receivedAtMs: Date.now() - i * DAY_MS + i,
}))
const ORIGIN = ORIGINS[0] as (typeof ORIGINS)[0]

describe('the table of metric points', () => {
  const { clickhouseUrl } = sharedServices()
  const batch = createMetricsBatch()
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
    await client.command({ query: 'TRUNCATE TABLE metric_points' })
  })
  afterAll(async () => {
    await client?.command({ query: `DROP DATABASE ${DATABASE} SYNC` })
    await client?.close()
  })

  async function insert(deduplicationToken = `token ${token++}`): Promise<void> {
    for (const block of batch.tables()) await insertNative(client, { ...block, deduplicationToken, timeoutMs: 20_000 })
  }

  async function select<T>(query: string): Promise<T[]> {
    const settings = { output_format_json_quote_64bit_integers: 1 } as const
    const result = await client.query({ query, format: 'JSONEachRow', clickhouse_settings: settings })
    return result.json<T>()
  }

  /** Reads rows as bytes, because JSON cannot represent invalid UTF-8 or a double that is NaN. */
  async function selectNative(): Promise<Row[]> {
    const query = 'SELECT * FROM metric_points ORDER BY series_id LIMIT 60000 FORMAT Native'
    const { stream } = await client.exec({ query })
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk as Buffer)
    return rowsOf(readBlock(Buffer.concat(chunks))).map(wholeRow)
  }

  it(`contains every value of ${STORED_MESSAGES} random messages`, async () => {
    const expected: Row[] = []
    for (const [i, request] of fc.sample(metricsRequest, STORED_MESSAGES).entries()) {
      const origin = ORIGINS[i % ORIGINS.length] as (typeof ORIGINS)[0]
      const body = Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request))
      const result = batch.append(origin as never, body)
      expect(result.ok || result.reason).toBeOneOf([true, 'no_records'])
      expected.push(...expectedPoints(origin, request).points)
    }
    await insert()
    expect(expected.length).toBeGreaterThan(5_000)
    expect(new Set(expected.map(row => row.type))).toEqual(new Set([1, 2, 3, 4, 5]))
    expect(inOrder(await selectNative())).toEqual(inOrder(expected))
  })

  it('finds points by the texts of their labels, whatever bytes they have', async () => {
    const texts = fc.string({ unit: fc.constantFrom('\0', '\x01', '\x02', '.', '\\', 'E', 'é', '7'), maxLength: 4 })
    const labels = fc.sample(fc.array(fc.tuple(texts, texts), { maxLength: 4 }), 300)
    const dataPoints = labels.map(pairs => ({ attributes: pairs.map(([key, value]) => text(key, value)), flags: 0 }))
    const metrics = [{ name: 'labels', data: { case: 'gauge' as const, value: { dataPoints } } }]
    const request = create(ExportMetricsServiceRequestSchema, { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
    batch.append(ORIGIN as never, Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request)))
    await insert()
    for (const key of new Set(labels.flatMap(pairs => pairs.map(([key]) => key)))) {
      const result = await client.query({
        query: `SELECT ${attributeText('{pattern: String}')} AS label, count() AS points FROM metric_points GROUP BY label`,
        query_params: { pattern: keyPattern(key) },
        format: 'JSONEachRow',
      })
      const expected = new Map<string, number>()
      for (const pairs of labels) {
        const label = pairs.find(([name]) => name === key)?.[1] ?? ''
        expected.set(label, (expected.get(label) ?? 0) + 1)
      }
      const found = (await result.json<{ label: string; points: string }>()).map(
        ({ label, points }) => [label, Number(points)] as const,
      )
      expect(new Map(found), JSON.stringify(key)).toEqual(expected)
    }
  })

  it('contains a batch once, however often its insert is repeated', async () => {
    for (const request of fc.sample(metricsRequest, 200)) {
      batch.append(ORIGIN as never, Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request)))
    }
    for (let repeat = 0; repeat < 3; repeat++) await insert('the same batch')
    await insert('another batch')
    expect(await select('SELECT count() AS n FROM metric_points')).toEqual([{ n: String(2 * batch.rows) }])
  })

  it('returns the values that were sent', async () => {
    const timeUnixNano = 1_790_000_000_000_000_001n
    const common = { timeUnixNano, startTimeUnixNano: 1n }
    const request = create(ExportMetricsServiceRequestSchema, {
      resourceMetrics: [
        {
          resource: { attributes: [text('service.name', 'shop')] },
          scopeMetrics: [
            {
              scope: { name: 'meter', version: '1.2.3' },
              metrics: [
                {
                  name: 'requests',
                  description: 'Requests that were answered.',
                  unit: '{request}',
                  metadata: [text('b', 'é'), text('a', '1')],
                  data: {
                    case: 'sum',
                    value: {
                      aggregationTemporality: 1,
                      isMonotonic: true,
                      dataPoints: [
                        {
                          ...common,
                          attributes: [text('route', '/api')],
                          value: { case: 'asInt', value: -(2n ** 63n) },
                          exemplars: [
                            {
                              timeUnixNano,
                              value: { case: 'asDouble', value: 0.5 },
                              traceId: Buffer.from('0102030405060708090a0b0c0d0e0f10', 'hex'),
                              spanId: Buffer.from('fffefdfcfbfaf9f8', 'hex'),
                              filteredAttributes: [text('user', 'eve')],
                            },
                          ],
                        },
                      ],
                    },
                  },
                },
                {
                  name: 'temperature',
                  data: {
                    case: 'gauge',
                    value: {
                      dataPoints: [
                        { ...common, value: { case: 'asDouble', value: -0.25 } },
                        { ...common, flags: 1 },
                      ],
                    },
                  },
                },
                {
                  name: 'duration',
                  data: {
                    case: 'histogram',
                    value: {
                      aggregationTemporality: 2,
                      dataPoints: [
                        {
                          ...common,
                          count: 3n,
                          sum: 1.5,
                          max: 1,
                          explicitBounds: [0.5, 1],
                          bucketCounts: [1n, 2n, 0n],
                        },
                      ],
                    },
                  },
                },
                {
                  name: 'size',
                  data: {
                    case: 'exponentialHistogram',
                    value: {
                      aggregationTemporality: 2,
                      dataPoints: [
                        {
                          ...common,
                          count: 2n ** 64n - 1n,
                          scale: -3,
                          zeroCount: 7n,
                          zeroThreshold: 0.001,
                          positive: { offset: -5, bucketCounts: [1n, 2n ** 64n - 1n] },
                          negative: { offset: 2, bucketCounts: [4n] },
                          min: -8,
                        },
                      ],
                    },
                  },
                },
                {
                  name: 'latency',
                  data: {
                    case: 'summary',
                    value: {
                      dataPoints: [{ ...common, count: 9n, quantileValues: [{ quantile: 0.99, value: 12.5 }] }],
                    },
                  },
                },
              ],
            },
          ],
        },
      ],
    })
    batch.append(ORIGIN as never, Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request)))
    await insert()
    const rows = await select<{ metric_name: string; value: number | null }>(
      `SELECT * EXCEPT (bounds, counts, exponential, details), value, explicit_bounds, bucket_counts, scale, positive_offset,
         negative_offset, zero_count, positive_bucket_counts, negative_bucket_counts FROM metric_points`,
    )
    const packed = new Map((await selectNative()).map(row => [row.metric_name, row]))
    const of = (name: string) => rows.filter(row => row.metric_name === name)
    expect(of('requests')).toMatchObject([
      {
        service_name: 'shop',
        description: 'Requests that were answered.',
        unit: '{request}',
        metadata: '{"a":"1","b":"é"}',
        type: 'sum',
        aggregation_temporality: 'delta',
        is_monotonic: true,
        start_time_unix_nano: '1',
        time_unix_nano: '1790000000000000001',
        value_type: 'int',
        as_int: '-9223372036854775808',
        value: -(2 ** 63),
      },
    ])
    expect(of('temperature').sort((a, b) => (a.value === null ? 1 : 0) - (b.value === null ? 1 : 0))).toMatchObject([
      { type: 'gauge', aggregation_temporality: 'unspecified', value_type: 'double', as_double: -0.25, value: -0.25 },
      { type: 'gauge', flags: 1, value_type: 'none', value: null },
    ])
    expect(of('duration')).toMatchObject([
      {
        type: 'histogram',
        count: '3',
        sum: 1.5,
        explicit_bounds: [0.5, 1],
        bucket_counts: ['1', '2', '0'],
        value: null,
      },
    ])
    expect(packed.get('duration')).toMatchObject({ min: null, max: 1 })
    expect(of('size')).toMatchObject([
      {
        type: 'exponential_histogram',
        aggregation_temporality: 'cumulative',
        count: '18446744073709551615',
        sum: null,
        scale: -3,
        zero_count: '7',
        positive_offset: -5,
        positive_bucket_counts: ['1', '18446744073709551615'],
        negative_offset: 2,
        negative_bucket_counts: ['4'],
      },
    ])
    expect(packed.get('size')).toMatchObject({ min: -8, zero_threshold: 0.001 })
    expect(of('latency')).toMatchObject([{ type: 'summary', count: '9', sum: 0 }])
    expect(packed.get('latency')).toMatchObject({ quantile_values: [{ quantile: 0.99, value: 12.5 }] })
    expect(packed.get('requests')).toMatchObject({
      scope_name: 'meter',
      scope_version: '1.2.3',
      attributes: [['route', '/api']],
      attribute_types: [1],
      exemplars: [
        {
          ...{ time_unix_nano: timeUnixNano, value_type: 2, as_double: 0.5 },
          trace_id: Buffer.from('0102030405060708090a0b0c0d0e0f10', 'hex').toString('latin1'),
          filtered_attributes: [['user', 'eve']],
          filtered_attribute_types: [1],
        },
      ],
    })
  })

  it('finds an hour of a metric by its key, from a condition on the time alone', async () => {
    const points = Array.from({ length: 24 }, (_, hour) =>
      Array.from({ length: 2_000 }, (_, i) => ({
        timeUnixNano: BigInt(hour * HOUR_S + i) * 1_000_000_000n,
        value: { case: 'asInt' as const, value: BigInt(i) },
      })),
    ).flat()
    for (const name of ['a', 'b']) {
      const metrics = [{ name, data: { case: 'gauge' as const, value: { dataPoints: points } } }]
      const request = create(ExportMetricsServiceRequestSchema, { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
      const appended = batch.append(ORIGIN as never, Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request)))
      expect(appended).toMatchObject({ ok: true, rows: points.length })
    }
    await insert()
    const explained = await select<{ explain: string }>(
      `EXPLAIN indexes = 1 SELECT sum(value) FROM metric_points
       WHERE workspace_id = '${ORIGIN.workspaceId}' AND metric_name = 'b'
         AND time_unix_nano >= 36000000000000 AND time_unix_nano < 39600000000000`,
    )
    const granules = explained.map(row => /Granules: (\d+)\/(\d+)/.exec(row.explain)).filter(found => found !== null)
    expect(granules.length).toBeGreaterThan(0)
    const [, read, all] = granules.at(-1) as RegExpExecArray
    expect(Number(all)).toBeGreaterThan(10)
    expect(Number(read)).toBeLessThanOrEqual(2)
  })

  it(`has the rows of ${MESSAGES} random messages, in any of their encodings`, () => {
    fc.assert(
      fc.property(metricsRequest, fc.nat(), (request, seed) => {
        const random = seededRandom(seed)
        const plain = toBinary(ExportMetricsServiceRequestSchema, request)
        const scrambled = scrambleMessage(plain, ExportMetricsServiceRequestSchema, random)
        const body = seed % 2 === 0 ? scrambled : unpackMessage(scrambled, ExportMetricsServiceRequestSchema, random)
        batch.reset()
        batch.append(ORIGIN as never, Buffer.from(body))
        expect(readTables(batch).get('metric_points') ?? []).toEqual(expectedPoints(ORIGIN, request).points)
      }),
      { numRuns: MESSAGES },
    )
  }, 300_000)
})

function text(key: string, value: string) {
  return { key, value: { value: { case: 'stringValue' as const, value } } }
}

/** Sorts rows by their values alone. */
function inOrder(rows: Row[]): Row[] {
  const replacer = (_: string, value: unknown) => {
    if (Object.is(value, -0)) return '-0'
    return typeof value === 'bigint' || typeof value === 'number' ? String(value) : value
  }
  const text = (row: Row) => JSON.stringify(row, replacer)
  return rows
    .map((row): [string, Row] => [text(Object.fromEntries(Object.entries(row).sort())), row])
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row)
}
