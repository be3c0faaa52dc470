import type { ExportMetricsServiceRequest } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import type { KeyValue } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type {
  Exemplar,
  ExponentialHistogramDataPoint,
  HistogramDataPoint,
  Metric,
  NumberDataPoint,
  SummaryDataPoint,
} from '../../../schemas/otlp/generated/opentelemetry/proto/metrics/v1/metrics_pb.js'
import type { PayloadSource, RejectedRows } from '../../../workers/otlp/protobuf/refusal.ts'
import { attributeColumns, canonicalJson, cut, latin1, noteRejection, promotedText, type Row } from './otlp-oracle.ts'
import type { NativeValue } from './read-block.ts'

/** Expected rows of points, and of their series. */
interface ExpectedPoints {
  points: Row[]
  rejected: RejectedRows
}

/** Computes the rows of a payload from the decoded message with plain objects, in the terms of `readBlock`. */
export function expectedPoints(origin: PayloadSource, request: ExportMetricsServiceRequest): ExpectedPoints {
  const result: ExpectedPoints = { points: [], rejected: {} }
  for (const { resource, scopeMetrics, schemaUrl } of request.resourceMetrics) {
    const resourceAttributes = resource?.attributes ?? []
    for (const { scope, metrics, schemaUrl: scopeSchemaUrl } of scopeMetrics) {
      const shared: Row = {
        workspace_id: origin.workspaceId,
        surface_id: origin.surfaceId,
        received_at: BigInt(origin.receivedAtMs),
        service_name: latin1(cut(promotedText(resourceAttributes, 'service.name'), 1_024)),
        service_version: latin1(cut(promotedText(resourceAttributes, 'service.version'), 256)),
        resource: latin1(canonicalJson(resourceAttributes)),
        resource_dropped_attributes_count: resource?.droppedAttributesCount ?? 0,
        resource_schema_url: latin1(cut(schemaUrl, 2_048)),
        scope_name: latin1(cut(scope?.name ?? '', 1_024)),
        scope_version: latin1(cut(scope?.version ?? '', 1_024)),
        scope_attributes: latin1(canonicalJson(scope?.attributes ?? [])),
        scope_schema_url: latin1(cut(scopeSchemaUrl, 2_048)),
        scope_dropped_attributes_count: scope?.droppedAttributesCount ?? 0,
      }
      for (const metric of metrics) appendMetric(result, shared, metric)
    }
  }
  return result
}

function appendMetric(result: ExpectedPoints, shared: Row, metric: Metric): void {
  for (const { row, attributes, rejection } of pointsOf(metric)) {
    if (rejection !== undefined) {
      noteRejection(result.rejected, rejection, result.points.length)
      continue
    }
    const whole: Row = {
      ...shared,
      metric_name: latin1(cut(metric.name, 1_024)),
      description: latin1(metric.description),
      unit: latin1(metric.unit),
      metadata: latin1(canonicalJson(metric.metadata)),
      ...NOTHING,
      ...row,
      ...attributeColumns(attributes),
    }
    // The id derives from the whole name, so that two long names never share a series.
    const seriesId = seriesIdOf({ ...whole, metric_name: latin1(metric.name) })
    result.points.push({ ...whole, series_id: seriesId })
  }
}

/** Values of a point in the columns of other kinds. */
const NOTHING: Row = {
  aggregation_temporality: 0,
  is_monotonic: false,
  value_type: 0,
  as_int: 0n,
  as_double: 0,
  count: 0n,
  sum: null,
  min: null,
  max: null,
  explicit_bounds: [],
  bucket_counts: [],
  scale: 0,
  zero_count: 0n,
  zero_threshold: 0,
  positive_offset: 0,
  positive_bucket_counts: [],
  negative_offset: 0,
  negative_bucket_counts: [],
  quantile_values: [],
  exemplars: [],
}

interface Point {
  row: Row
  attributes: KeyValue[]
  rejection?: 'invalid_bucket_counts'
}

function pointsOf({ data }: Metric): Point[] {
  switch (data.case) {
    case undefined:
      return []
    case 'gauge':
      return data.value.dataPoints.map(point => numberPoint(point, { type: 1 }))
    case 'sum': {
      const { dataPoints, aggregationTemporality, isMonotonic } = data.value
      const stream = {
        type: 2,
        aggregation_temporality: temporality(aggregationTemporality),
        is_monotonic: isMonotonic,
      }
      return dataPoints.map(point => numberPoint(point, stream))
    }
    case 'histogram': {
      const stream = { type: 3, aggregation_temporality: temporality(data.value.aggregationTemporality) }
      return data.value.dataPoints.map(point => histogramPoint(point, stream))
    }
    case 'exponentialHistogram': {
      const stream = { type: 4, aggregation_temporality: temporality(data.value.aggregationTemporality) }
      return data.value.dataPoints.map(point => exponentialHistogramPoint(point, stream))
    }
    case 'summary':
      return data.value.dataPoints.map(summaryPoint)
  }
}

function numberPoint(point: NumberDataPoint, stream: Row): Point {
  const row = { ...stream, ...common(point), ...numberColumns(point.value), exemplars: point.exemplars.map(exemplarOf) }
  return { attributes: point.attributes, row }
}

function histogramPoint(point: HistogramDataPoint, stream: Row): Point {
  const { explicitBounds, bucketCounts } = point
  if (bucketCounts.length > 0 && bucketCounts.length !== explicitBounds.length + 1) {
    return { row: {}, attributes: [], rejection: 'invalid_bucket_counts' }
  }
  const row = {
    ...stream,
    ...common(point),
    ...distribution(point),
    explicit_bounds: explicitBounds,
    bucket_counts: bucketCounts,
    exemplars: point.exemplars.map(exemplarOf),
  }
  return { attributes: point.attributes, row }
}

function exponentialHistogramPoint(point: ExponentialHistogramDataPoint, stream: Row): Point {
  const row = {
    ...stream,
    ...common(point),
    ...distribution(point),
    scale: point.scale,
    zero_count: point.zeroCount,
    zero_threshold: point.zeroThreshold,
    positive_offset: point.positive?.offset ?? 0,
    positive_bucket_counts: point.positive?.bucketCounts ?? [],
    negative_offset: point.negative?.offset ?? 0,
    negative_bucket_counts: point.negative?.bucketCounts ?? [],
    exemplars: point.exemplars.map(exemplarOf),
  }
  return { attributes: point.attributes, row }
}

function summaryPoint(point: SummaryDataPoint): Point {
  const row = {
    type: 5,
    ...common(point),
    count: point.count,
    sum: point.sum,
    quantile_values: point.quantileValues.map(({ quantile, value }) => ({ quantile, value })),
  }
  return { attributes: point.attributes, row }
}

function common(point: { startTimeUnixNano: bigint; timeUnixNano: bigint; flags: number }): Row {
  return {
    start_time_unix_nano: point.startTimeUnixNano,
    time_unix_nano: point.timeUnixNano,
    flags: point.flags,
  }
}

function distribution(point: HistogramDataPoint | ExponentialHistogramDataPoint): Row {
  return { count: point.count, sum: point.sum ?? null, min: point.min ?? null, max: point.max ?? null }
}

function numberColumns(value: NumberDataPoint['value']): Row {
  if (value.case === 'asInt') return { value_type: 1, as_int: value.value, as_double: 0 }
  if (value.case === 'asDouble') return { value_type: 2, as_int: 0n, as_double: value.value }
  return { value_type: 0, as_int: 0n, as_double: 0 }
}

function exemplarOf(exemplar: Exemplar): Row {
  const { attributes, attribute_types } = attributeColumns(exemplar.filteredAttributes)
  return {
    time_unix_nano: exemplar.timeUnixNano,
    ...numberColumns(exemplar.value),
    span_id: Buffer.from(exemplar.spanId).toString('latin1'),
    trace_id: Buffer.from(exemplar.traceId).toString('latin1'),
    filtered_attributes: attributes as NativeValue,
    filtered_attribute_types: attribute_types as NativeValue,
  }
}

function temporality(value: number): number {
  return value >= 0 && value <= 2 ? value : 0
}

type Lanes = readonly [low: number, high: number]
const SEED: Lanes = [0x243f_6a88, 0x85a3_08d3]

/** Computes the id that workers/otlp/metrics/series-id.ts defines, from a row and with different code. */
function seriesIdOf(row: Row): bigint {
  const surface = absorb(SEED, ...textWords(row.workspace_id), ...textWords(row.surface_id))
  const resource = absorb(SEED, ...textWords(row.resource))
  const scope = absorb(
    SEED,
    ...textWords(row.scope_name),
    ...textWords(row.scope_version),
    ...textWords(row.scope_attributes),
  )
  const origin = absorb(SEED, ...surface, ...resource, ...scope)
  const header = finish(absorb(SEED, ...textWords(row.metric_name), ...textWords(row.unit)))
  const kind =
    (row.type as number) + 256 * (row.aggregation_temporality as number) + (row.is_monotonic === true ? 65_536 : 0)
  const pairs = row.attributes as [NativeValue, NativeValue][]
  const types = row.attribute_types as number[]
  let sumLow = 0
  let sumHigh = 0
  // In reverse order, because the order of attributes must not matter.
  for (const [i, [key, value]] of [...pairs.entries()].reverse()) {
    const stored = String(value).replaceAll('\x01', '\x01\x03').replaceAll('\0', '\x01\x02')
    const isEscaped = String(value).includes('\0')
    const words = wordsOf(Buffer.from(isEscaped ? stored : String(value), 'latin1'))
    const type = (types[i] as number) + (isEscaped ? 8 : 0)
    const [low, high] = finish(absorb(SEED, type, ...textWords(key), ...words))
    sumLow = (sumLow + low) >>> 0
    sumHigh = (sumHigh + high) >>> 0
  }
  const [low, high] = finish(absorb(SEED, ...origin, ...header, kind, sumLow, sumHigh))
  return (BigInt(high) << 32n) | BigInt(low)
}

/** Writes the length as a varint, then the bytes in words of four. */
function textWords(text: NativeValue | undefined): number[] {
  const bytes = Buffer.from(text as string, 'latin1')
  const length = []
  for (let rest = bytes.length; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      length.push(rest)
      break
    }
    length.push((rest % 128) + 128)
  }
  return wordsIn(Buffer.concat([Buffer.from(length), bytes]))
}

/** Writes the length as a word, then the bytes in words of four. */
function wordsOf(bytes: Buffer): number[] {
  return [bytes.length, ...wordsIn(bytes)]
}

function wordsIn(bytes: Buffer): number[] {
  const whole = Buffer.concat([bytes, Buffer.alloc(3)])
  return Array.from({ length: Math.ceil((whole.length - 3) / 4) }, (_, i) => whole.readUInt32LE(i * 4))
}

function absorb([low, high]: Lanes, ...words: number[]): Lanes {
  return words.reduce<Lanes>(
    ([l, h], word) => [shiftXor(Math.imul(l ^ word, 0x85eb_ca6b), 13), shiftXor(Math.imul(h + word, 0xc2b2_ae35), 16)],
    [low, high],
  )
}

function finish([low, high]: Lanes): Lanes {
  const first = avalanche(low + high)
  return [first, avalanche(high + first)]
}

function avalanche(lane: number): number {
  const first = Math.imul(shiftXor(lane, 16), 0x85eb_ca6b)
  const second = Math.imul(shiftXor(first, 13), 0xc2b2_ae35)
  return shiftXor(second, 16)
}

function shiftXor(value: number, bits: number): number {
  return (value ^ (value >>> bits)) >>> 0
}
