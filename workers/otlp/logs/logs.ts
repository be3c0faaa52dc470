import { RowsTooLarge } from '../../../clickhouse/native/rows-too-large.ts'
import { ExceptionsTable } from '../../../clickhouse/tables/exceptions-table.ts'
import { LogsTable } from '../../../clickhouse/tables/logs-table.ts'
import { type AppendResult, blocksOf, type RowBatch } from '../../batch/row-batch.ts'
import { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import { createRecentStacks, type RecentStacks } from '../../exceptions/stack-requests.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { OriginWriter } from '../protobuf/origin-writer.ts'
import { type PayloadOrigin, Refusal, type RejectedCounts } from '../protobuf/refusal.ts'
import { EmbeddedMessage, type ResourceEntry } from '../protobuf/resource-cache.ts'
import { WireCursor } from '../protobuf/wire.ts'
import { LogDecoder } from './log-decoder.ts'

/**
 * A record may be empty, so that two bytes of a payload ask for a row of 130: without a limit 64 MiB would ask for 4 GiB.
 * Records of 32 bytes and more, as all that say something are, never meet it.
 */
const RECORDS_LIMIT = 2 * 1024 * 1024

/**
 * Rows of `logs` and `exceptions` from ExportLogsServiceRequest messages, in one pass from wire bytes to column
 * buffers. The fields of each ResourceLogs and ScopeLogs are skimmed first, as those of spans are.
 */
export function createLogsBatch(recentStacks: RecentStacks = createRecentStacks()): RowBatch {
  const attributes = new Attributes()
  const table = new LogsTable(attributes)
  const exceptionsTable = new ExceptionsTable()
  const exceptions = new ExceptionDeriver(exceptionsTable, recentStacks)
  const decoder = new LogDecoder(table, attributes, exceptions)
  const origin = new OriginWriter(table.origin)
  const buffers = [table.buffer, exceptionsTable.buffer]
  let rejected: RejectedCounts = {}
  let recordsLeft = 0

  function appendRequest(body: Buffer): void {
    const wire = new WireCursor(body)
    for (let pos = 0; pos < body.length; ) {
      const tag = wire.readField(pos, body.length)
      pos = wire.next
      if (tag === 0x0a) appendResourceLogs(wire, wire.start, pos)
    }
  }

  /** ResourceLogs: `Resource resource = 1; repeated ScopeLogs scope_logs = 2; string schema_url = 3`. */
  function appendResourceLogs(wire: WireCursor, start: number, end: number): void {
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
      if (tag === 0x12) appendScopeLogs(wire, wire.start, pos, resource)
    }
  }

  /** ScopeLogs: `InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3`. */
  function appendScopeLogs(wire: WireCursor, start: number, end: number, resource: ResourceEntry): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    let rowLimit = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) rowLimit++
      else if (tag === 0x0a) message.add(wire.start, pos)
      else if (tag === 0x1a) schemaUrl = wire.bytes.toString('utf8', wire.start, pos)
    }
    if (rowLimit === 0) return
    recordsLeft -= rowLimit
    if (recordsLeft < 0) throw new RowsTooLarge()
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
    recordsLeft = RECORDS_LIMIT
    for (const buffer of buffers) buffer.mark()
    try {
      origin.beginPayload(frame)
      decoder.beginPayload(frame)
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
