import { FixedColumns } from '../native/fixed-columns.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { type Column, column, TableBuffer } from '../native/table-buffer.ts'
import { type AttributeBuffers, attributeColumns, VALUE_TYPE } from './attribute-columns.ts'
import { ScopeColumns } from './scope-columns.ts'

/** Bytes of a row whose texts are empty, in all columns. */
const MIN_ROW_BYTES = 154

/** The last fields of an event and of a link. */
const ATTRIBUTE_FIELDS = `attributes Map(String, String), attribute_types Array(${VALUE_TYPE}), dropped_attributes_count UInt32`

/** The column buffers of the table `spans`. */
export class SpansTable {
  readonly scope = new ScopeColumns()
  readonly traceId = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly parentSpanId = new GrowingBuffer()
  readonly traceState = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  readonly name = new GrowingBuffer()
  readonly kind = new GrowingBuffer()
  readonly startTime = new GrowingBuffer()
  readonly endTime = new GrowingBuffer()
  readonly statusCode = new GrowingBuffer()
  readonly statusMessage = new GrowingBuffer()
  readonly attributeOffsets = new GrowingBuffer()
  readonly droppedAttributesCount = new GrowingBuffer()
  readonly eventOffsets = new GrowingBuffer()
  readonly droppedEventsCount = new GrowingBuffer()
  readonly linkOffsets = new GrowingBuffer()
  readonly droppedLinksCount = new GrowingBuffer()
  readonly sessionId = new GrowingBuffer()
  readonly httpRoute = new GrowingBuffer()
  readonly httpStatusCode = new GrowingBuffer()
  readonly events: EventColumns
  readonly links: LinkColumns
  readonly buffer: TableBuffer
  private readonly fixed: FixedColumns

  constructor(attributes: AttributeBuffers, eventAttributes: AttributeBuffers, linkAttributes: AttributeBuffers) {
    this.events = new EventColumns(eventAttributes)
    this.links = new LinkColumns(linkAttributes)
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
        [this.attributeOffsets, 8],
        [this.droppedAttributesCount, 4],
        [this.eventOffsets, 8],
        [this.droppedEventsCount, 4],
        [this.linkOffsets, 8],
        [this.droppedLinksCount, 4],
        [this.httpStatusCode, 2],
      ],
      MIN_ROW_BYTES,
    )
    this.buffer = new TableBuffer('spans', [
      ...this.scope.columns(),
      column('trace_id', 'FixedString(16)', this.traceId),
      column('span_id', 'FixedString(8)', this.spanId),
      column('parent_span_id', 'FixedString(8)', this.parentSpanId),
      column('trace_state', 'String', this.traceState),
      column('flags', 'UInt32', this.flags),
      column('name', 'String', this.name),
      column('kind', 'UInt8', this.kind),
      column('start_time_unix_nano', 'UInt64', this.startTime),
      column('end_time_unix_nano', 'UInt64', this.endTime),
      column('status_code', 'UInt8', this.statusCode),
      column('status_message', 'String', this.statusMessage),
      ...attributeColumns('', this.attributeOffsets, attributes),
      column('dropped_attributes_count', 'UInt32', this.droppedAttributesCount),
      eventsColumn(this.eventOffsets, this.events, eventAttributes),
      column('dropped_events_count', 'UInt32', this.droppedEventsCount),
      linksColumn(this.linkOffsets, this.links, linkAttributes),
      column('dropped_links_count', 'UInt32', this.droppedLinksCount),
      column('session_id', 'String', this.sessionId),
      column('http_route', 'String', this.httpRoute),
      column('http_status_code', 'UInt16', this.httpStatusCode),
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

/** Columns with a value per event or link instead of per span. */
abstract class NestedColumns {
  readonly attributeOffsets = new GrowingBuffer()
  readonly droppedAttributesCount = new GrowingBuffer()
  private readonly marks: number[] = []
  protected abstract readonly buffers: readonly GrowingBuffer[]

  /** Number of events or links. */
  get count(): number {
    return this.droppedAttributesCount.length / 4
  }

  /** Remembers the lengths before the first event or link of a span. */
  mark(): void {
    for (let i = 0; i < this.buffers.length; i++) this.marks[i] = (this.buffers[i] as GrowingBuffer).length
  }

  /** Removes the events or links of a rejected span. */
  rewind(): void {
    for (const [i, buffer] of this.buffers.entries()) buffer.truncate(this.marks[i] ?? 0)
  }
}

/** Columns of the events of spans. */
export class EventColumns extends NestedColumns {
  readonly time = new GrowingBuffer()
  readonly name = new GrowingBuffer()
  protected readonly buffers: readonly GrowingBuffer[]

  constructor({ keys, values, types }: AttributeBuffers) {
    super()
    this.buffers = [this.time, this.name, this.attributeOffsets, keys, values, types, this.droppedAttributesCount]
  }
}

/** Columns of the links of spans. */
export class LinkColumns extends NestedColumns {
  readonly traceId = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly traceState = new GrowingBuffer()
  readonly flags = new GrowingBuffer()
  protected readonly buffers: readonly GrowingBuffer[]

  constructor({ keys, values, types }: AttributeBuffers) {
    super()
    const ids = [this.traceId, this.spanId, this.traceState, this.flags]
    this.buffers = [...ids, this.attributeOffsets, keys, values, types, this.droppedAttributesCount]
  }
}

function eventsColumn(
  offsets: GrowingBuffer,
  { time, name, attributeOffsets, droppedAttributesCount }: EventColumns,
  { keys, values, types }: AttributeBuffers,
): Column {
  const fields = `time_unix_nano UInt64, name String, ${ATTRIBUTE_FIELDS}`
  const attributes = [attributeOffsets, keys, values, attributeOffsets, types, droppedAttributesCount]
  return column('events', `Array(Tuple(${fields}))`, offsets, time, name, ...attributes)
}

function linksColumn(
  offsets: GrowingBuffer,
  { traceId, spanId, traceState, flags, attributeOffsets, droppedAttributesCount }: LinkColumns,
  { keys, values, types }: AttributeBuffers,
): Column {
  const fields = `trace_id String, span_id String, trace_state String, flags UInt32, ${ATTRIBUTE_FIELDS}`
  const attributes = [attributeOffsets, keys, values, attributeOffsets, types, droppedAttributesCount]
  return column('links', `Array(Tuple(${fields}))`, offsets, traceId, spanId, traceState, flags, ...attributes)
}
