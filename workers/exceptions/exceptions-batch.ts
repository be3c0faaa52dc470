import { ExceptionsTable } from '../../clickhouse/tables/exceptions-table.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { createBufferedRows } from '../sink/buffered-rows.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { RecordReader, TEXT } from './exception-records.ts'
import { createRecentStacks, type RecentStacks, StackRequests } from './stack-requests.ts'

/** Creates rows of `exceptions` from the records of the queue `exceptions`, and requests symbolication of their stacks. */
export function createExceptionsBatch(recentStacks: RecentStacks = createRecentStacks()): RowBatch {
  const table = new ExceptionsTable()
  const requests = new StackRequests(recentStacks)
  const append = (frame: PayloadFrame, body: Buffer) => {
    const reader = new RecordReader(body)
    let rows = 0
    for (; reader.next(); rows++) appendRecord(table, requests, frame, reader)
    return { rows }
  }
  return createBufferedRows([table.buffer], append, requests)
}

function appendRecord(
  table: ExceptionsTable,
  requests: StackRequests,
  frame: PayloadFrame,
  record: RecordReader,
): void {
  const { bytes, view } = record
  const findingStart = record.at('findingId')
  const findingId = bytes.toString('latin1', findingStart, findingStart + 30)
  const serviceVersion = record.text(TEXT.serviceVersion)
  const debugIds = record.debugIds()
  const copy = (column: ExceptionsTable['type'], text: number) => {
    column.raw(bytes, view, record.starts[text] as number, record.starts[text + 1] as number)
  }
  table.buffer.rows++
  table.workspaceId.fill(table.workspaceId.indexOf(frame.workspaceId), 1)
  table.surfaceId.fill(table.surfaceId.indexOf(frame.surfaceId), 1)
  table.receivedAt.integer64(frame.receivedAtMs)
  table.findingId.raw(bytes, view, findingStart, findingStart + 30)
  table.traceId.raw(bytes, view, record.at('traceId'), record.at('traceId') + 16)
  table.spanId.raw(bytes, view, record.at('spanId'), record.at('spanId') + 8)
  table.occurredAt.raw(bytes, view, record.at('occurredAt'), record.at('occurredAt') + 8)
  table.serviceName.fill(table.serviceName.indexOf(record.text(TEXT.serviceName)), 1)
  table.serviceVersion.fill(table.serviceVersion.indexOf(serviceVersion), 1)
  copy(table.sessionId, TEXT.sessionId)
  table.source.u8(bytes[record.at('source')] as number)
  copy(table.type, TEXT.type)
  copy(table.message, TEXT.message)
  copy(table.stacktrace, TEXT.stacktrace)
  copy(table.spanName, TEXT.spanName)
  table.escaped.u8(bytes[record.at('escaped')] as number)
  table.appendDebugIds(debugIds)
  if (!requests.isNew(findingId, serviceVersion)) return
  const stacktrace = record.text(TEXT.stacktrace)
  if (stacktrace === '') return
  const at = record.at('occurredAt')
  const [timeLow, timeHigh] = [view.getUint32(at, true), view.getUint32(at + 4, true)]
  requests.note(frame, { findingId, serviceVersion, stacktrace, debugIds, timeLow, timeHigh })
}
