import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** The column buffers of the table `span_stats`. Its owner writes each column of a row. */
export class SpanStatsTable {
  readonly workspaceId = new LowCardinality()
  readonly surfaceId = new LowCardinality()
  readonly receivedAt = new GrowingBuffer()
  readonly serviceName = new LowCardinality()
  readonly minute = new GrowingBuffer()
  readonly operation = new LowCardinality()
  readonly kind = new GrowingBuffer()
  readonly statusCode = new GrowingBuffer()
  readonly httpStatusClass = new GrowingBuffer()
  readonly environment = new LowCardinality()
  readonly serviceVersion = new LowCardinality()
  readonly peer = new LowCardinality()
  readonly spans = new GrowingBuffer()
  readonly durationSum = new GrowingBuffer()
  /** Ends of the lists of buckets, counted in buckets. */
  readonly bucketEnds = new GrowingBuffer()
  readonly buckets = new GrowingBuffer()
  readonly bucketCounts = new GrowingBuffer()
  readonly slowestDuration = new GrowingBuffer()
  readonly slowestTraceId = new GrowingBuffer()

  readonly buffer = new TableBuffer('span_stats', [
    column('workspace_id', 'LowCardinality(String)', this.workspaceId),
    column('surface_id', 'LowCardinality(String)', this.surfaceId),
    column('received_at', "DateTime64(3, 'UTC')", this.receivedAt),
    column('service_name', 'LowCardinality(String)', this.serviceName),
    column('minute', "DateTime('UTC')", this.minute),
    column('operation', 'LowCardinality(String)', this.operation),
    column('kind', 'UInt8', this.kind),
    column('status_code', 'UInt8', this.statusCode),
    column('http_status_class', 'UInt8', this.httpStatusClass),
    column('environment', 'LowCardinality(String)', this.environment),
    column('service_version', 'LowCardinality(String)', this.serviceVersion),
    column('peer', 'LowCardinality(String)', this.peer),
    column('spans', 'UInt64', this.spans),
    column('duration_sum_nano', 'UInt64', this.durationSum),
    column('durations', 'Map(UInt16, UInt64)', this.bucketEnds, this.buckets, this.bucketCounts),
    column(
      'slowest',
      'Tuple(duration_nano UInt64, trace_id FixedString(16))',
      this.slowestDuration,
      this.slowestTraceId,
    ),
  ])
}
