import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { beforeEach, describe, expect, it } from 'vitest'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import {
  type HistogramDataPointSchema,
  MetricSchema,
  type NumberDataPointSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/metrics/v1/metrics_pb.js'
import { readBlock, rowsOf } from '../../../test/support/oracles/read-block.ts'
import { wholeRow } from '../../../test/support/oracles/whole-row.ts'
import { createMetricsBatch } from './metrics.ts'

/** The plain object of an init shape, without the message type, so that parts of it can be replaced. */
type Init<Desc extends DescMessage> = Exclude<MessageInitShape<Desc>, { $typeName: string }>
type MetricInit = Init<typeof MetricSchema>
type NumberInit = Init<typeof NumberDataPointSchema>
type HistogramInit = Init<typeof HistogramDataPointSchema>

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })
const int = (key: string, value: bigint) => ({ key, value: { value: { case: 'intValue' as const, value } } })
const gauge = (name: string, ...dataPoints: NumberInit[]): MetricInit => ({
  name,
  data: { case: 'gauge', value: { dataPoints } },
})
const sum = (name: string, ...dataPoints: NumberInit[]): MetricInit => ({
  name,
  data: { case: 'sum', value: { dataPoints, aggregationTemporality: 2, isMonotonic: true } },
})
const histogram = (name: string, ...dataPoints: HistogramInit[]): MetricInit => ({
  name,
  data: { case: 'histogram', value: { dataPoints, aggregationTemporality: 1 } },
})
const asInt = (value: bigint): NumberInit => ({ value: { case: 'asInt', value } })

function payload(metrics: MetricInit[], service = 'shop', scope = 'meter'): Buffer {
  const request = create(ExportMetricsServiceRequestSchema, {
    resourceMetrics: [
      {
        resource: { attributes: [text('service.name', service)] },
        scopeMetrics: [{ scope: { name: scope }, metrics }],
      },
    ],
  })
  return Buffer.from(toBinary(ExportMetricsServiceRequestSchema, request))
}

const encode = (metric: MetricInit) => Buffer.from(toBinary(MetricSchema, create(MetricSchema, metric)))

function field(tag: number, content: Buffer): Buffer {
  const length: number[] = []
  for (let rest = content.length; rest > 0 || length.length === 0; rest >>>= 7) length.push((rest & 0x7f) | 0x80)
  length[length.length - 1] = (length.at(-1) as number) & 0x7f
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

/** A request with one Metric of these bytes. */
const requestOf = (...metric: Buffer[]) => field(0x0a, field(0x12, field(0x12, Buffer.concat(metric))))

describe('a batch of metrics', () => {
  const batch = createMetricsBatch()
  beforeEach(() => batch.reset())

  const append = (body: Buffer, origin = ORIGIN) => batch.append(origin as never, body)
  const rows = () => batch.tables().flatMap(({ block }) => rowsOf(readBlock(Buffer.concat(block))).map(wholeRow))
  const column = (name: string) => rows().map(row => row[name])

  it('is empty without payloads, after an empty one, and after one without points', () => {
    expect(append(Buffer.alloc(0))).toEqual({ ok: true, rows: 0, rejected: {} })
    expect(append(payload([{ name: 'no data' }, gauge('no points')]))).toEqual({ ok: false, reason: 'no_records' })
    expect([batch.rows, batch.tables()]).toEqual([0, []])
  })

  it('is empty after a resource alone, as an SDK without instruments exports it, but not after fields of other versions', () => {
    const resource = field(0x0a, field(0x0a, field(0x0a, Buffer.from('a'))))
    expect(append(field(0x0a, resource))).toEqual({ ok: true, rows: 0, rejected: {} })
    const olderScopes = Buffer.from([0xc2, 0x3e, 1, 7])
    expect(append(field(0x0a, Buffer.concat([resource, olderScopes])))).toEqual({ ok: false, reason: 'no_records' })
    expect(append(field(0x0a, Buffer.alloc(0)))).toEqual({ ok: false, reason: 'no_records' })
    expect(append(Buffer.concat([field(0x0a, resource), olderScopes]))).toEqual({ ok: false, reason: 'no_records' })
  })

  it.each<[string, HistogramInit]>([
    ['as many counts as bounds', { explicitBounds: [1, 2], bucketCounts: [1n, 2n] }],
    ['two counts more than bounds', { explicitBounds: [1, 2], bucketCounts: [1n, 2n, 3n, 4n] }],
    ['counts and no bounds', { explicitBounds: [], bucketCounts: [1n, 2n] }],
  ])('leaves out only the histogram with %s', (_, buckets) => {
    const full: HistogramInit = {
      attributes: [text('a', 'b')],
      exemplars: [{ value: { case: 'asInt', value: 1n }, filteredAttributes: [text('c', 'd')] }],
      explicitBounds: [0.5],
      bucketCounts: [3n, 4n],
    }
    const body = payload([
      histogram('h', full, { ...full, ...buckets, attributes: [text('bad', 'x')] }, full),
      gauge('g', asInt(7n)),
    ])
    const whole = payload([histogram('h', full, full), gauge('g', asInt(7n))])
    expect(append(body)).toEqual({ ok: true, rows: 3, rejected: { invalid_bucket_counts: { count: 1, indexes: [1] } } })
    const found = rows()
    batch.reset()
    append(whole)
    expect(found).toEqual(rows())
  })

  it.each<[string, HistogramInit]>([
    ['without buckets', { count: 3n, sum: 1 }],
    ['with bounds alone', { explicitBounds: [1, 2] }],
    ['with one bucket of everything', { bucketCounts: [9n] }],
  ])('accepts a histogram %s', (_, point) => {
    expect(append(payload([histogram('h', point)]))).toEqual({ ok: true, rows: 1, rejected: {} })
  })

  it('keeps the values of every point between points of other kinds', () => {
    const quantileValues = [{ quantile: 0.5, value: 8 }]
    append(
      payload([
        histogram('h1', { sum: 5, explicitBounds: [1], bucketCounts: [2n, 3n] }),
        gauge('g1', asInt(1n), { value: { case: 'asDouble', value: 2.5 } }),
        { name: 's', data: { case: 'summary', value: { dataPoints: [{ count: 4n, quantileValues }] } } },
      ]),
    )
    append(
      payload([
        {
          name: 'e',
          data: {
            case: 'exponentialHistogram',
            value: { dataPoints: [{ scale: -1, max: 6, positive: { offset: -7, bucketCounts: [5n] } }] },
          },
        },
        gauge('g2', { exemplars: [{ timeUnixNano: 9n }] }),
        histogram('h2', { min: 1, explicitBounds: [2, 3], bucketCounts: [4n, 5n, 6n] }),
      ]),
    )
    const of = (...names: string[]) => rows().map(row => names.map(name => row[name]))
    expect(of('metric_name', 'as_int', 'as_double', 'count')).toEqual([
      ['h1', 0n, 0, 0n],
      ['g1', 1n, 0, 0n],
      ['g1', 0n, 2.5, 0n],
      ['s', 0n, 0, 4n],
      ['e', 0n, 0, 0n],
      ['g2', 0n, 0, 0n],
      ['h2', 0n, 0, 0n],
    ])
    expect(of('sum', 'min', 'max')).toEqual([
      [5, null, null],
      [null, null, null],
      [null, null, null],
      [0, null, null],
      [null, null, 6],
      [null, null, null],
      [null, 1, null],
    ])
    expect(column('explicit_bounds')).toEqual([[1], [], [], [], [], [], [2, 3]])
    expect(column('bucket_counts')).toEqual([[2n, 3n], [], [], [], [], [], [4n, 5n, 6n]])
    expect(column('positive_offset')).toEqual([0, 0, 0, 0, -7, 0, 0])
    expect(column('positive_bucket_counts')).toEqual([[], [], [], [], [5n], [], []])
    expect(column('quantile_values')).toEqual([[], [], [], quantileValues, [], [], []])
    expect(column('exemplars').map(exemplars => (exemplars as unknown[]).length)).toEqual([0, 0, 0, 0, 0, 1, 0])
  })

  it('uses the last member of a metric’s data, merged with the same kind directly before it', () => {
    const [first, second, third] = [gauge('', asInt(1n)), gauge('', asInt(2n)), gauge('', asInt(3n))].map(encode) as [
      Buffer,
      Buffer,
      Buffer,
    ]
    const other = encode(sum('', asInt(4n)))
    append(requestOf(first, other))
    append(requestOf(first, second, third))
    append(requestOf(first, other, second, third))
    expect(rows().map(({ type, as_int }) => [type, as_int])).toEqual([
      [2, 4n],
      [1, 1n],
      [1, 2n],
      [1, 3n],
      [1, 2n],
      [1, 3n],
    ])
    expect(column('is_monotonic')).toEqual([true, false, false, false, false, false])
  })

  it('merges a sum whose temporality comes with another piece', () => {
    const points = encode({
      name: 'n',
      data: { case: 'sum', value: { dataPoints: [asInt(1n)], aggregationTemporality: 1 } },
    })
    const rest = encode({ data: { case: 'sum', value: { aggregationTemporality: 2, isMonotonic: true } } })
    append(requestOf(points, rest))
    append(requestOf(rest, points))
    expect(rows().map(row => [row.aggregation_temporality, row.is_monotonic])).toEqual([
      [2, true],
      [1, true],
    ])
  })

  it('reads the name of a metric after its points, between them, or twice', () => {
    const data = encode(gauge('', asInt(1n)))
    append(requestOf(data, field(0x0a, Buffer.from('late'))))
    append(requestOf(data, field(0x0a, Buffer.from('first')), data, field(0x0a, Buffer.from('last'))))
    expect(column('metric_name')).toEqual(['late', 'last', 'last'])
  })

  it('keeps int and double apart, the last one sent, and none', () => {
    const point = (...fields: Buffer[]) => requestOf(field(0x2a, field(0x0a, Buffer.concat(fields))))
    const double = Buffer.from([0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f])
    const integer = Buffer.from([0x31, 5, 0, 0, 0, 0, 0, 0, 0])
    for (const body of [point(double, integer), point(integer, double), point()]) append(body)
    expect(rows().map(row => [row.value_type, row.as_int, row.as_double])).toEqual([
      [1, 5n, 0],
      [2, 0n, 1],
      [0, 0n, 0],
    ])
  })

  it('refuses packed values that are not whole', () => {
    const body = requestOf(field(0x4a, field(0x0a, field(0x32, Buffer.alloc(15)))))
    expect(append(body)).toEqual({ ok: false, reason: 'truncated' })
  })

  it('refuses a payload whose points need more memory than its size allows', () => {
    const points = (count: number) => requestOf(field(0x2a, Buffer.alloc(count * 2, Buffer.from([0x0a, 0]))))
    expect(append(points(1_000_000))).toEqual({ ok: false, reason: 'rows_too_large' })
    expect(append(points(65_000))).toMatchObject({ ok: true, rows: 65_000 })
  })

  it('is unchanged by a refused payload', () => {
    append(payload([histogram('kept', { explicitBounds: [1], bucketCounts: [1n, 2n] }), gauge('kept too', asInt(1n))]))
    const before = [batch.bytes, rows()]
    const exemplars = [{ filteredAttributes: [text('e', 'f')] }]
    const point: HistogramInit = {
      exemplars,
      attributes: [text('c', 'd')],
      explicitBounds: [7],
      bucketCounts: [8n, 9n],
    }
    const other = payload([gauge('lost', { ...asInt(1n), exemplars }), histogram('cut', point)], 'other', 'another')
    expect(append(other.subarray(0, other.length - 1))).toEqual({ ok: false, reason: 'truncated' })
    expect([batch.bytes, rows()]).toEqual(before)
    append(payload([gauge('next', asInt(2n)), histogram('last', point)], 'third'))
    expect(column('metric_name')).toEqual(['kept', 'kept too', 'next', 'last'])
    expect(column('service_name')).toEqual(['shop', 'shop', 'third', 'third'])
    expect(column('bucket_counts')).toEqual([[1n, 2n], [], [], [8n, 9n]])
  })

  describe('a series', () => {
    const attributes = [text('a', '1'), text('b', '2'), int('c', 3n)]
    const base = payload([sum('requests', { ...asInt(1n), attributes, timeUnixNano: 1n })])

    function seriesOf(body: Buffer, origin = ORIGIN) {
      const fresh = createMetricsBatch()
      fresh.append(origin as never, body)
      return fresh.tables().flatMap(({ block }) => rowsOf(readBlock(Buffer.concat(block))))[0]?.series_id
    }

    it('is the same in any batch, in any order of its attributes, and for any point, description and unknown field', () => {
      const again = payload([
        { ...gauge('other', asInt(1n)) },
        {
          ...sum('requests', { ...asInt(9n), attributes: attributes.toReversed(), timeUnixNano: 2n, flags: 1 }),
          description: 'new',
        },
      ])
      append(again)
      expect(column('series_id')[1]).toBe(seriesOf(base))
      expect(seriesOf(Buffer.concat([base, Buffer.from([0x78, 1])]))).toBe(seriesOf(base))
    })

    it('differs for everything that OpenTelemetry calls identifying', () => {
      const point = { ...asInt(1n), attributes }
      const metric = sum('requests', point)
      const streams = [
        { aggregationTemporality: 1, isMonotonic: true },
        { aggregationTemporality: 2, isMonotonic: false },
      ].map(stream => ({ ...metric, data: { case: 'sum' as const, value: { ...stream, dataPoints: [point] } } }))
      const others = [
        ...streams.map(stream => payload([stream])),
        payload([gauge('requests', point)]),
        payload([{ ...metric, unit: 's' }]),
        payload([{ ...metric, name: 'request' }]),
        payload([metric], 'other service'),
        payload([metric], 'shop', 'other scope'),
        payload([sum('requests', { ...point, attributes: attributes.slice(1) })]),
        payload([sum('requests', { ...point, attributes: [...attributes, ...attributes] })]),
        payload([sum('requests', { ...point, attributes: [text('a', '1'), text('b', '2'), text('c', '3')] })]),
        payload([sum('requests', { ...point, attributes: [text('a', '2'), text('b', '1'), int('c', 3n)] })]),
        payload([sum('requests', { ...point, attributes: [text('a1', ''), text('b', '2'), int('c', 3n)] })]),
      ].map(body => seriesOf(body))
      const origins = [
        { ...ORIGIN, workspaceId: 'ws_2' },
        { ...ORIGIN, surfaceId: 'srf_2' },
        { ...ORIGIN, workspaceId: 'ws_1s', surfaceId: 'rf_1' },
      ].map(origin => seriesOf(base, origin))
      const all = [seriesOf(base), ...others, ...origins]
      expect(new Set(all).size).toBe(all.length)
    })

    it('shares its id with none of 200,000 others', () => {
      const dataPoints = Array.from({ length: 200_000 }, (_, i) => ({
        attributes: [int('shard', BigInt(i % 500)), text('host', `host-${Math.floor(i / 500)}`)],
      }))
      append(payload([{ name: 'load', data: { case: 'gauge', value: { dataPoints } } }]))
      expect(new Set(column('series_id')).size).toBe(200_000)
    })
  })
})
