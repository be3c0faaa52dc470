import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'
import { packedAttributeColumns } from './packed-attributes.ts'
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

/** Bytes of a row whose texts are empty, in all columns. */
const MIN_ROW_BYTES = 114

/**
 * The column buffers of the table `metric_points`. A point writes the columns that every point has and
 * those of its kind. The others follow in runs (`PartialColumns`), because a gauge has no value in half of them.
 */
export class MetricPointsTable {
  readonly scope = new ScopeColumns()
  readonly metric = new MetricColumns()
  readonly seriesId = new GrowingBuffer()
  readonly startTime = new GrowingBuffer()
  readonly time = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  readonly numbers = new NumberColumns()
  readonly distribution = new DistributionColumns()
  readonly histogram = new HistogramColumns()
  readonly exponential = new ExponentialHistogramColumns()
  readonly details = new DetailColumns()
  readonly buffer: TableBuffer
  private readonly partial: readonly PartialColumns[]

  constructor(attributes: { readonly keyLists: LowCardinality; readonly values: GrowingBuffer }) {
    const { metric, numbers, distribution, histogram, exponential, details } = this
    this.partial = [numbers, distribution, histogram, exponential, details]
    const columns = [
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
      ...packedAttributeColumns(attributes),
      column('flags', 'UInt32', this.flags),
      column('value_type', NUMBER_TYPE, numbers.type),
      column('as_int', 'Int64', numbers.asInt),
      column('as_double', 'Float64', numbers.asDouble),
      column('count', 'UInt64', distribution.count),
      column('sum', 'Nullable(Float64)', distribution.sumIsNull, distribution.sum),
      column('bounds', 'String', histogram.bounds),
      column('counts', 'String', histogram.counts),
      column('exponential', 'String', exponential.values),
      column('details', 'String', details.values),
    ]
    this.buffer = new TableBuffer('metric_points', columns, this.scope.originParts())
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

/**
 * Columns for which only some rows have values. They stay shorter than the table until a row needs them or the payload
 * ends. Then the rows between get their defaults at once, by `memset` instead of row by row.
 */
abstract class PartialColumns {
  /** Number of rows that these columns have. */
  rows = 0
  protected abstract readonly fixed: readonly FixedColumn[]

  /** Writes the defaults of the rows before `row`. No column may have a value of `row` yet. */
  fillTo(row: number): void {
    const count = row - this.rows
    if (count === 0) return
    for (let i = 0; i < this.fixed.length; i++) {
      const { buffer, width, byte } = this.fixed[i] as FixedColumn
      buffer.fillBytes(byte, count * width)
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
}

/** Columns that both kinds of histograms and summaries share. */
class DistributionColumns extends PartialColumns {
  readonly count = new GrowingBuffer()
  readonly sumIsNull = new GrowingBuffer()
  readonly sum = new GrowingBuffer()
  protected readonly fixed = [
    { buffer: this.count, width: 8, byte: 0 },
    { buffer: this.sumIsNull, width: 1, byte: 1 },
    { buffer: this.sum, width: 8, byte: 0 },
  ]
}

/** A column of texts, which are empty in rows without a value. */
const texts = (buffer: GrowingBuffer): FixedColumn => ({ buffer, width: 1, byte: 0 })

/** Columns of histograms with explicit bounds: lists of doubles and of 64-bit counts, as they are in a message. */
class HistogramColumns extends PartialColumns {
  readonly bounds = new GrowingBuffer()
  readonly counts = new GrowingBuffer()
  protected readonly fixed = [texts(this.bounds), texts(this.counts)]
}

/** Column of the buckets of exponential histograms (clickhouse/migrations/0004_metrics.sql). */
class ExponentialHistogramColumns extends PartialColumns {
  readonly values = new GrowingBuffer()
  protected readonly fixed = [texts(this.values)]
}

/** Column of the fields of points that no query asks for, as they were sent. */
class DetailColumns extends PartialColumns {
  readonly values = new GrowingBuffer()
  protected readonly fixed = [texts(this.values)]
}
