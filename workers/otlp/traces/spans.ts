import { RowsTooLarge } from '../../../clickhouse/native/rows-too-large.ts'
import { ExceptionsTable } from '../../../clickhouse/tables/exceptions-table.ts'
import { SpansTable } from '../../../clickhouse/tables/spans-table.ts'
import { type AppendResult, blocksOf } from '../../batch/row-batch.ts'
import { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import { createRecentStacks, type RecentStacks } from '../../exceptions/stack-requests.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { OriginWriter } from '../protobuf/origin-writer.ts'
import type { OtlpBatch } from '../protobuf/otlp-batch.ts'
import { type PayloadOrigin, Refusal, type RejectedCounts } from '../protobuf/refusal.ts'
import { EmbeddedMessage, type ResourceEntry } from '../protobuf/resource-cache.ts'
import { WireCursor } from '../protobuf/wire.ts'
import { SpanDecoder } from './span-decoder.ts'

/** A span with nothing but its two ids: smaller ones are rejected and need no room. */
const MIN_SPAN_BYTES = 28

/**
 * Rows of `spans` and `exceptions` from ExportTraceServiceRequest messages, in one pass from wire bytes to column
 * buffers. Protobuf lets a resource follow its spans, so the fields of each ResourceSpans and ScopeSpans are skimmed
 * for it first; that costs about 4 % of the pass.
 */
export function createSpansBatch(recentStacks: RecentStacks = createRecentStacks()): OtlpBatch {
  const attributes = { span: new Attributes(), event: new Attributes(), link: new Attributes() }
  const table = new SpansTable(attributes.span, attributes.event, attributes.link)
  const exceptionsTable = new ExceptionsTable()
  const exceptions = new ExceptionDeriver(exceptionsTable, recentStacks)
  const decoder = new SpanDecoder(table, attributes, exceptions)
  const origin = new OriginWriter(table.origin)
  const buffers = [table.buffer, exceptionsTable.buffer]
  let rejected: RejectedCounts = {}

  function appendRequest(body: Buffer): void {
    const wire = new WireCursor(body)
    for (let pos = 0; pos < body.length; ) {
      const tag = wire.readField(pos, body.length)
      pos = wire.next
      if (tag === 0x0a) appendResourceSpans(wire, wire.start, pos)
    }
  }

  /** ResourceSpans: `Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3`. */
  function appendResourceSpans(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x0a) message.add(wire.start, pos)
      else if (tag === 0x1a) schemaUrl = wire.bytes.toString('utf8', wire.start, pos)
      wire.next = pos
    }
    const resource = origin.beginResource(message, schemaUrl)
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) appendScopeSpans(wire, wire.start, pos, resource)
    }
  }

  /** ScopeSpans: `InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3`. */
  function appendScopeSpans(wire: WireCursor, start: number, end: number, resource: ResourceEntry): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    let rowLimit = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) {
        if (pos - wire.start >= MIN_SPAN_BYTES) rowLimit++
      } else if (tag === 0x0a) message.add(wire.start, pos)
      else if (tag === 0x1a) schemaUrl = wire.bytes.toString('utf8', wire.start, pos)
    }
    origin.beginScope(message, schemaUrl)
    table.reserveRows(rowLimit)
    const firstRow = table.buffer.rows
    let row = firstRow
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag !== 0x12) continue
      const rejection = decoder.append(wire, wire.start, pos, row, resource)
      if (rejection === undefined) row++
      else rejected[rejection] = (rejected[rejection] ?? 0) + 1
    }
    table.commitRows(row)
    origin.fill(row - firstRow)
  }

  function append(frame: PayloadOrigin, body: Buffer): AppendResult {
    const rowsBefore = table.buffer.rows
    rejected = {}
    for (const buffer of buffers) buffer.mark()
    try {
      origin.beginPayload(frame)
      exceptions.beginPayload(frame)
      appendRequest(body)
    } catch (error) {
      for (const buffer of buffers) buffer.rewind()
      exceptions.stackRequests.rewind()
      origin.clearCache()
      if (error instanceof Refusal) return { ok: false, reason: error.reason }
      if (error instanceof RowsTooLarge) return { ok: false, reason: 'rows_too_large' }
      throw error
    }
    if (exceptions.overLimit > 0) rejected.exceptions_over_limit = exceptions.overLimit
    return { ok: true, rows: table.buffer.rows - rowsBefore, rejected }
  }

  return {
    append,
    get rows() {
      return table.buffer.rows
    },
    get bytes() {
      return table.buffer.bytes + exceptionsTable.buffer.bytes
    },
    tables: () => blocksOf(buffers),
    stackRequests: () => exceptions.stackRequests.frames,
    finished: () => exceptions.stackRequests.finished(),
    reset() {
      for (const buffer of buffers) buffer.reset()
      origin.clearCache()
      exceptions.reset()
    },
  }
}
