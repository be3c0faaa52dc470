import { ExceptionSource, ExceptionsTable } from '../../clickhouse/tables/exceptions-table.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { createBufferedRows } from '../sink/buffered-rows.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { withRules } from '../sink/workspace-rules.ts'
import { RecordReader, TEXT } from './exception-records.ts'
import type { KnownFindings } from './known-findings.ts'
import type { KnownRules } from './known-rules.ts'
import { RulesOfBatch } from './rules.ts'
import { createRecentStacks, type RecentStacks, StackRequests } from './stack-requests.ts'

const PLACES = ['browser', 'system', 'route', 'environment', 'host'] as const

/**
 * Creates rows of `exceptions` from the records of the queue `exceptions`, and requests symbolication of their stacks. Without
 * `known` and `knownRules`, each row has its finding as sent. Spans that failed without an exception of their own become rows of
 * `failures`, of which the upkeep keeps those that nothing explains.
 */
export function createExceptionsBatch(
  known?: Pick<KnownFindings, 'of'>,
  recentStacks: RecentStacks = createRecentStacks(),
  knownRules?: KnownRules,
): RowBatch {
  const table = new ExceptionsTable()
  const failures = new ExceptionsTable('failures')
  const requests = new StackRequests(recentStacks)
  const rules = knownRules && new RulesOfBatch(knownRules)
  const append = (frame: PayloadFrame, body: Buffer) => {
    const reader = new RecordReader(body)
    let rows = 0
    for (; reader.next(); rows++) {
      const isFailure = reader.bytes[reader.at('source')] === ExceptionSource.spanStatus
      appendRecord(isFailure ? failures : table, requests, frame, reader, rules?.identify(frame, reader))
    }
    return { rows }
  }
  const complete = async () => {
    const memberships = await known?.of(requests.variants, requests.frames)
    if (memberships !== undefined && memberships.size > 0) table.moveVariants(memberships)
  }
  const batch = Object.assign(createBufferedRows([table.buffer, failures.buffer], append, requests), { complete })
  if (rules === undefined) return batch
  return Object.assign(withRules(batch, { grouping: rules }), { stored: () => rules.stored() })
}

function appendRecord(
  table: ExceptionsTable,
  requests: StackRequests,
  frame: PayloadFrame,
  record: RecordReader,
  ruled: ReturnType<RulesOfBatch['identify']>,
): void {
  const { bytes, view } = record
  const [variantStart, findingStart] = [record.at('variantId'), record.at('findingId')]
  const variantId = ruled?.variantId ?? bytes.subarray(variantStart, variantStart + 16)
  const serviceVersion = record.text(TEXT.serviceVersion)
  const serviceName = record.text(TEXT.serviceName)
  const debugIds = record.debugIds()
  const copy = (column: ExceptionsTable['type'], text: number) => {
    column.raw(bytes, view, record.starts[text] as number, record.starts[text + 1] as number)
  }
  table.buffer.rows++
  table.workspaceId.fill(table.workspaceId.indexOf(frame.workspaceId), 1)
  table.surfaceId.fill(table.surfaceId.indexOf(frame.surfaceId), 1)
  table.receivedAt.integer64(frame.receivedAtMs)
  table.variantId.rawBytes(variantId)
  if (ruled === undefined) table.findingId.raw(bytes, view, findingStart, findingStart + 30)
  else table.findingId.rawText(ruled.findingId)
  table.rank.u64(ruled?.revision ?? 0, 0)
  table.traceId.raw(bytes, view, record.at('traceId'), record.at('traceId') + 16)
  table.spanId.raw(bytes, view, record.at('spanId'), record.at('spanId') + 8)
  table.parentSpanId.raw(bytes, view, record.at('parentSpanId'), record.at('parentSpanId') + 8)
  table.occurredAt.raw(bytes, view, record.at('occurredAt'), record.at('occurredAt') + 8)
  table.serviceName.fill(table.serviceName.indexOf(serviceName), 1)
  table.serviceVersion.fill(table.serviceVersion.indexOf(serviceVersion), 1)
  copy(table.sessionId, TEXT.sessionId)
  table.source.u8(bytes[record.at('source')] as number)
  copy(table.fingerprint, TEXT.fingerprint)
  copy(table.type, TEXT.type)
  copy(table.message, TEXT.message)
  copy(table.stacktrace, TEXT.stacktrace)
  copy(table.spanName, TEXT.spanName)
  copy(table.topFrame, TEXT.topFrame)
  table.escaped.u8(bytes[record.at('escaped')] as number)
  table.appendDebugIds(debugIds)
  for (const place of PLACES) table[place].fill(table[place].indexOf(record.text(TEXT[place])), 1)
  const day = Math.floor(frame.receivedAtMs / DAY_MS)
  const variant = variantId.toString('hex')
  if (!requests.variants.has(variant)) requests.variants.set(variant, frame.workspaceId)
  const key = `${variant} ${day}`
  if (!requests.isNew(key)) return
  const stacktrace = record.text(TEXT.stacktrace)
  if (stacktrace === '') return
  const at = record.at('occurredAt')
  requests.note(frame, key, {
    ...{ variantId: variant, serviceName, serviceVersion, stacktrace, debugIds },
    ...{ type: record.text(TEXT.type), message: record.text(TEXT.message), fingerprint: record.text(TEXT.fingerprint) },
    occurredAtUnixNano: view.getBigUint64(at, true).toString(),
  })
}
