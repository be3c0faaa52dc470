import { FixedColumns } from '../native/fixed-columns.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import type { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'
import { packedAttributeColumns } from './packed-attributes.ts'
import { ScopeColumns } from './scope-columns.ts'

/** Type of a body. The codes are `ValueType` in workers/otlp/protobuf/any-value.ts. */
const BODY_TYPE =
  "Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)"

/** Bytes of a row whose texts are empty, in all columns. */
const MIN_ROW_BYTES = 91

/** The column buffers of the table `logs`. */
export class LogsTable {
  readonly scope = new ScopeColumns()
  readonly timestamp = new GrowingBuffer()
  readonly time = new GrowingBuffer()
  readonly observedTime = new GrowingBuffer()
  readonly severityNumber = new GrowingBuffer()
  readonly severityText = new GrowingBuffer()
  readonly body = new GrowingBuffer()
  readonly bodyType = new GrowingBuffer()
  readonly droppedAttributesCount = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  readonly traceId = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly eventName = new GrowingBuffer()
  readonly sessionId = new GrowingBuffer()
  readonly buffer: TableBuffer
  private readonly fixed: FixedColumns

  constructor(attributes: { readonly keyLists: LowCardinality; readonly values: GrowingBuffer }) {
    this.fixed = new FixedColumns(
      [
        [this.traceId, 16],
        [this.spanId, 8],
        [this.timestamp, 8],
        [this.time, 8],
        [this.observedTime, 8],
        [this.severityNumber, 1],
        [this.bodyType, 1],
        [this.droppedAttributesCount, 4],
        [this.flags, 4],
      ],
      MIN_ROW_BYTES,
    )
    const columns = [
      ...this.scope.columns(),
      column('timestamp', "DateTime64(9, 'UTC')", this.timestamp),
      column('time_unix_nano', 'UInt64', this.time),
      column('observed_time_unix_nano', 'UInt64', this.observedTime),
      column('severity_number', 'UInt8', this.severityNumber),
      column('severity_text', 'String', this.severityText),
      column('body', 'String', this.body),
      column('body_type', BODY_TYPE, this.bodyType),
      ...packedAttributeColumns(attributes),
      column('dropped_attributes_count', 'UInt32', this.droppedAttributesCount),
      column('flags', 'UInt32', this.flags),
      column('trace_id', 'FixedString(16)', this.traceId),
      column('span_id', 'FixedString(8)', this.spanId),
      column('event_name', 'String', this.eventName),
      column('session_id', 'String', this.sessionId),
    ]
    this.buffer = new TableBuffer('logs', columns, this.scope.originParts())
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
