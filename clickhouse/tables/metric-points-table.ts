import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'
import { type AttributeBuffers, attributeColumns, VALUE_TYPE } from './attribute-columns.ts'
import { ScopeColumns } from './scope-columns.ts'

/** Codes of `metric_points.type`. */
export const MetricType = { gauge: 1, sum: 2, histogram: 3, exponentialHistogram: 4, summary: 5 } as const
/** A code of `metric_points.type`. */
export type MetricType = (typeof MetricType)[keyof typeof MetricType]

/** Codes of `value_type`: which member of the value of a point or an exemplar is set. */
export const NumberType = { none: 0, int: 1, double: 2 } as const

const METRIC_TYPE = "Enum8('gauge' = 1, 'sum' = 2, 'histogram' = 3, 'exponential_histogram' = 4, 'summary' = 5)"
const TEMPORALITY = "Enum8('unspecified' = 0, 'delta' = 1, 'cumulative' = 2)"
const NUMBER_TYPE = "Enum8('none' = 0, 'int' = 1, 'double' = 2)"

/** Bytes of a row without texts, arrays and exemplars, in all columns. */
const MIN_ROW_BYTES = 239

/**
 * The column buffers of the table `metric_points`. A point writes the columns that every point has and
 * those of its kind. The others follow in runs (`PartialColumns`), because a gauge has no value in 25 of them.
 */
export class MetricPointsTable {
  readonly scope = new ScopeColumns()
  readonly metric = new MetricColumns()
  readonly seriesId = new GrowingBuffer()
  readonly startTime = new GrowingBuffer()
  readonly time = new GrowingBuffer()
  readonly attributeOffsets = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  readonly numbers = new NumberColumns()
  readonly distribution = new DistributionColumns()
  readonly histogram = new HistogramColumns()
  readonly exponential = new ExponentialHistogramColumns()
  readonly summary = new SummaryColumns()
  readonly exemplars: ExemplarColumns
  readonly buffer: TableBuffer
  private readonly partial: readonly PartialColumns[]

  constructor(attributes: AttributeBuffers, exemplarAttributes: AttributeBuffers) {
    this.exemplars = new ExemplarColumns(exemplarAttributes)
    const { metric, numbers, distribution, histogram, exponential, summary, exemplars } = this
    this.partial = [numbers, distribution, histogram, exponential, summary, exemplars]
    this.buffer = new TableBuffer('metric_points', [
      ...this.scope.columns(),
      column('metric_name', 'LowCardinality(String)', metric.name),
      column('description', 'LowCardinality(String)', metric.description),
      column('unit', 'LowCardinality(String)', metric.unit),
      column('metadata', 'LowCardinality(String)', metric.metadata),
      column('type', METRIC_TYPE, metric.type),
      column('aggregation_temporality', TEMPORALITY, metric.temporality),
      column('is_monotonic', 'Bool', metric.isMonotonic),
      column('series_id', 'UInt64', this.seriesId),
      column('start_time_unix_nano', 'UInt64', this.startTime),
      column('time_unix_nano', 'UInt64', this.time),
      ...attributeColumns('', this.attributeOffsets, attributes),
      column('flags', 'UInt32', this.flags),
      column('value_type', NUMBER_TYPE, numbers.type),
      column('as_int', 'Int64', numbers.asInt),
      column('as_double', 'Float64', numbers.asDouble),
      column('count', 'UInt64', distribution.count),
      column('sum', 'Nullable(Float64)', distribution.sumIsNull, distribution.sum),
      column('min', 'Nullable(Float64)', distribution.minIsNull, distribution.min),
      column('max', 'Nullable(Float64)', distribution.maxIsNull, distribution.max),
      column('explicit_bounds', 'Array(Float64)', histogram.boundOffsets, histogram.bounds),
      column('bucket_counts', 'Array(UInt64)', histogram.countOffsets, histogram.counts),
      column('scale', 'Int32', exponential.scale),
      column('zero_count', 'UInt64', exponential.zeroCount),
      column('zero_threshold', 'Float64', exponential.zeroThreshold),
      column('positive_offset', 'Int32', exponential.positiveOffset),
      column('positive_bucket_counts', 'Array(UInt64)', exponential.positiveOffsets, exponential.positiveCounts),
      column('negative_offset', 'Int32', exponential.negativeOffset),
      column('negative_bucket_counts', 'Array(UInt64)', exponential.negativeOffsets, exponential.negativeCounts),
      column(
        'quantile_values',
        'Array(Tuple(quantile Float64, value Float64))',
        summary.offsets,
        summary.quantile,
        summary.value,
      ),
      column(
        'exemplars',
        `Array(Tuple(time_unix_nano UInt64, value_type ${NUMBER_TYPE}, as_int Int64, as_double Float64, span_id String, trace_id String, filtered_attributes Map(String, String), filtered_attribute_types Array(${VALUE_TYPE})))`,
        exemplars.offsets,
        exemplars.time,
        exemplars.type,
        exemplars.asInt,
        exemplars.asDouble,
        exemplars.spanId,
        exemplars.traceId,
        exemplars.attributeOffsets,
        exemplarAttributes.keys,
        exemplarAttributes.values,
        exemplars.attributeOffsets,
        exemplarAttributes.types,
      ),
    ])
  }

  /** Throws `RowsTooLarge` if this many more rows exceed the budget. */
  checkRows(count: number): void {
    this.time.budget?.check(count * MIN_ROW_BYTES)
  }

  /** Gives every column as many rows as the table has. Must be called at the end of each payload. */
  levelColumns(): void {
    for (const columns of this.partial) columns.fillTo(this.buffer.rows)
  }

  /** Removes the rows that the buffer no longer has. Must be called after the buffer was rewound or reset. */
  realignColumns(): void {
    for (const columns of this.partial) columns.rows = this.buffer.rows
  }
}

/** A column of fixed width; a row without a value has the byte `byte` throughout. */
interface FixedColumn {
  readonly buffer: GrowingBuffer
  readonly width: number
  readonly byte: number
}

/** A column of arrays: the end of each array, and one buffer of elements from which their number is read. */
interface ArrayColumn {
  readonly offsets: GrowingBuffer
  readonly elements: GrowingBuffer
  readonly width: number
}

/**
 * Columns for which only some rows have values. They stay shorter than the table until a row needs them or the payload
 * ends. Then the rows between get their defaults at once, by `memset` instead of row by row.
 */
abstract class PartialColumns {
  /** Number of rows that these columns have. */
  rows = 0
  protected abstract readonly fixed: readonly FixedColumn[]
  protected abstract readonly arrays: readonly ArrayColumn[]

  /** Writes the defaults of the rows before `row`. The arrays must not have elements of `row` yet. */
  fillTo(row: number): void {
    const count = row - this.rows
    if (count === 0) return
    for (let i = 0; i < this.fixed.length; i++) {
      const { buffer, width, byte } = this.fixed[i] as FixedColumn
      buffer.fillBytes(byte, count * width)
    }
    for (let i = 0; i < this.arrays.length; i++) {
      const { offsets, elements, width } = this.arrays[i] as ArrayColumn
      offsets.fillU64(elements.length / width, 0, count)
    }
    this.rows = row
  }
}

/** The values that all points of a Metric share, filled in one run per Metric. */
class MetricColumns {
  readonly name = new LowCardinality()
  readonly description = new LowCardinality()
  readonly unit = new LowCardinality()
  readonly metadata = new LowCardinality()
  readonly type = new GrowingBuffer()
  readonly temporality = new GrowingBuffer()
  readonly isMonotonic = new GrowingBuffer()
}

/** The value of a point of a gauge or a sum. */
class NumberColumns extends PartialColumns {
  readonly type = new GrowingBuffer()
  readonly asInt = new GrowingBuffer()
  readonly asDouble = new GrowingBuffer()
  protected readonly fixed = [
    { buffer: this.type, width: 1, byte: 0 },
    { buffer: this.asInt, width: 8, byte: 0 },
    { buffer: this.asDouble, width: 8, byte: 0 },
  ]
  protected readonly arrays = []
}

/** Columns that both kinds of histograms and summaries share. */
class DistributionColumns extends PartialColumns {
  readonly count = new GrowingBuffer()
  readonly sumIsNull = new GrowingBuffer()
  readonly sum = new GrowingBuffer()
  readonly minIsNull = new GrowingBuffer()
  readonly min = new GrowingBuffer()
  readonly maxIsNull = new GrowingBuffer()
  readonly max = new GrowingBuffer()
  protected readonly fixed = [
    { buffer: this.count, width: 8, byte: 0 },
    { buffer: this.sumIsNull, width: 1, byte: 1 },
    { buffer: this.sum, width: 8, byte: 0 },
    { buffer: this.minIsNull, width: 1, byte: 1 },
    { buffer: this.min, width: 8, byte: 0 },
    { buffer: this.maxIsNull, width: 1, byte: 1 },
    { buffer: this.max, width: 8, byte: 0 },
  ]
  protected readonly arrays = []
}

/** Columns of histograms with explicit bounds. */
class HistogramColumns extends PartialColumns {
  readonly boundOffsets = new GrowingBuffer()
  readonly bounds = new GrowingBuffer()
  readonly countOffsets = new GrowingBuffer()
  readonly counts = new GrowingBuffer()
  protected readonly fixed = []
  protected readonly arrays = [
    { offsets: this.boundOffsets, elements: this.bounds, width: 8 },
    { offsets: this.countOffsets, elements: this.counts, width: 8 },
  ]
}

/** Columns of exponential histograms. */
class ExponentialHistogramColumns extends PartialColumns {
  readonly scale = new GrowingBuffer()
  readonly zeroCount = new GrowingBuffer()
  readonly zeroThreshold = new GrowingBuffer()
  readonly positiveOffset = new GrowingBuffer()
  readonly positiveOffsets = new GrowingBuffer()
  readonly positiveCounts = new GrowingBuffer()
  readonly negativeOffset = new GrowingBuffer()
  readonly negativeOffsets = new GrowingBuffer()
  readonly negativeCounts = new GrowingBuffer()
  protected readonly fixed = [
    { buffer: this.scale, width: 4, byte: 0 },
    { buffer: this.zeroCount, width: 8, byte: 0 },
    { buffer: this.zeroThreshold, width: 8, byte: 0 },
    { buffer: this.positiveOffset, width: 4, byte: 0 },
    { buffer: this.negativeOffset, width: 4, byte: 0 },
  ]
  protected readonly arrays = [
    { offsets: this.positiveOffsets, elements: this.positiveCounts, width: 8 },
    { offsets: this.negativeOffsets, elements: this.negativeCounts, width: 8 },
  ]
}

/** Columns of summaries. */
class SummaryColumns extends PartialColumns {
  readonly offsets = new GrowingBuffer()
  readonly quantile = new GrowingBuffer()
  readonly value = new GrowingBuffer()
  protected readonly fixed = []
  protected readonly arrays = [{ offsets: this.offsets, elements: this.quantile, width: 8 }]
}

/** Columns of the exemplars of points of every kind. */
class ExemplarColumns extends PartialColumns {
  readonly offsets = new GrowingBuffer()
  readonly time = new GrowingBuffer()
  readonly type = new GrowingBuffer()
  readonly asInt = new GrowingBuffer()
  readonly asDouble = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly traceId = new GrowingBuffer()
  readonly attributeOffsets = new GrowingBuffer()
  protected readonly fixed = []
  protected readonly arrays = [{ offsets: this.offsets, elements: this.type, width: 1 }]
  private readonly elements: readonly GrowingBuffer[]
  private readonly marks: number[] = []

  constructor({ keys, values, types }: AttributeBuffers) {
    super()
    const numbers = [this.time, this.type, this.asInt, this.asDouble]
    this.elements = [...numbers, this.spanId, this.traceId, this.attributeOffsets, keys, values, types]
  }

  /** Remembers the lengths before the first exemplar of a point. */
  mark(): void {
    for (let i = 0; i < this.elements.length; i++) this.marks[i] = (this.elements[i] as GrowingBuffer).length
  }

  /** Removes the exemplars of a rejected point. */
  rewind(): void {
    for (const [i, buffer] of this.elements.entries()) buffer.truncate(this.marks[i] ?? 0)
  }
}
