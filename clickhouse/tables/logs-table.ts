import { FixedColumns } from '../native/fixed-columns.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'
import { type AttributeBuffers, attributeColumns, VALUE_TYPE } from './attribute-columns.ts'
import { ScopeColumns } from './scope-columns.ts'

/** Bytes of a row whose texts are empty, in all columns. */
const MIN_ROW_BYTES = 125

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
  readonly attributeOffsets = new GrowingBuffer()
  readonly droppedAttributesCount = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  readonly traceId = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly eventName = new GrowingBuffer()
  readonly sessionId = new GrowingBuffer()
  readonly buffer: TableBuffer
  private readonly fixed: FixedColumns

  constructor(attributes: AttributeBuffers) {
    this.fixed = new FixedColumns(
      [
        [this.traceId, 16],
        [this.spanId, 8],
        [this.timestamp, 8],
        [this.time, 8],
        [this.observedTime, 8],
        [this.severityNumber, 1],
        [this.bodyType, 1],
        [this.attributeOffsets, 8],
        [this.droppedAttributesCount, 4],
        [this.flags, 4],
      ],
      MIN_ROW_BYTES,
    )
    this.buffer = new TableBuffer('logs', [
      ...this.scope.columns(),
      column('timestamp', "DateTime64(9, 'UTC')", this.timestamp),
      column('time_unix_nano', 'UInt64', this.time),
      column('observed_time_unix_nano', 'UInt64', this.observedTime),
      column('severity_number', 'UInt8', this.severityNumber),
      column('severity_text', 'String', this.severityText),
      column('body', 'String', this.body),
      column('body_type', VALUE_TYPE, this.bodyType),
      ...attributeColumns('', this.attributeOffsets, attributes),
      column('dropped_attributes_count', 'UInt32', this.droppedAttributesCount),
      column('flags', 'UInt32', this.flags),
      column('trace_id', 'FixedString(16)', this.traceId),
      column('span_id', 'FixedString(8)', this.spanId),
      column('event_name', 'String', this.eventName),
      column('session_id', 'String', this.sessionId),
    ])
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
