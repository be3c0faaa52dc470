import { FixedColumns } from '../native/fixed-columns.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'
import { packedAttributeColumns } from './packed-attributes.ts'
import { ScopeColumns } from './scope-columns.ts'

/** Bytes of a row whose texts are empty, in all columns. */
const MIN_ROW_BYTES = 91

/** The column buffers of the table `spans`. */
export class SpansTable {
  readonly scope = new ScopeColumns()
  readonly traceId = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly parentSpanId = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  readonly name = new GrowingBuffer()
  readonly kind = new GrowingBuffer()
  readonly startTime = new GrowingBuffer()
  readonly endTime = new GrowingBuffer()
  readonly statusCode = new GrowingBuffer()
  readonly statusMessage = new GrowingBuffer()
  readonly sessionId = new GrowingBuffer()
  readonly httpRoute = new GrowingBuffer()
  readonly httpStatusCode = new GrowingBuffer()
  readonly details = new GrowingBuffer()
  /** What a client, producer or consumer talks to (workers/otlp/traces/peers.ts). */
  readonly peer = new LowCardinality()
  readonly buffer: TableBuffer
  private readonly fixed: FixedColumns

  constructor(attributes: { readonly keyLists: LowCardinality; readonly values: GrowingBuffer }) {
    this.fixed = new FixedColumns(
      [
        [this.traceId, 16],
        [this.spanId, 8],
        [this.parentSpanId, 8],
        [this.flags, 4],
        [this.kind, 1],
        [this.startTime, 8],
        [this.endTime, 8],
        [this.statusCode, 1],
        [this.httpStatusCode, 2],
      ],
      MIN_ROW_BYTES,
    )
    const columns = [
      ...this.scope.columns(),
      column('trace_id', 'FixedString(16)', this.traceId),
      column('span_id', 'FixedString(8)', this.spanId),
      column('parent_span_id', 'FixedString(8)', this.parentSpanId),
      column('flags', 'UInt32', this.flags),
      column('name', 'String', this.name),
      column('kind', 'UInt8', this.kind),
      column('start_time_unix_nano', 'UInt64', this.startTime),
      column('end_time_unix_nano', 'UInt64', this.endTime),
      column('status_code', 'UInt8', this.statusCode),
      column('status_message', 'String', this.statusMessage),
      ...packedAttributeColumns(attributes),
      column('session_id', 'String', this.sessionId),
      column('http_route', 'String', this.httpRoute),
      column('http_status_code', 'UInt16', this.httpStatusCode),
      column('details', 'String', this.details),
      column('peer', 'LowCardinality(String)', this.peer),
    ]
    this.buffer = new TableBuffer('spans', columns, this.scope.originParts())
  }

  /** Makes room in the columns of fixed width. Throws `RowsTooLarge` before any of them grows if the rows exceed the budget. */
  reserveRows(count: number): void {
    this.fixed.reserve(count)
  }

  /** Sets the number of rows. All of them must have been written. */
  commitRows(rows: number): void {
    this.fixed.commit(rows)
    this.buffer.rows = rows
  }
}
