import { ExceptionSource, type ExceptionsTable } from '../../clickhouse/tables/exceptions-table.ts'
import type { Attributes } from '../otlp/protobuf/attributes.ts'
import { cutText } from '../otlp/protobuf/cut-text.ts'
import type { PayloadSource } from '../otlp/protobuf/refusal.ts'
import type { ResourceEntry } from '../otlp/protobuf/resource-cache.ts'
import { type DebugIds, NO_DEBUG_IDS, readDebugIds } from './debug-ids.ts'
import { findingIdOf } from './fingerprint.ts'
import { type RecentStacks, StackRequests } from './stack-requests.ts'

/** Deriving one takes up to 50 µs; what a hostile payload can hold of them must not stop a worker for seconds. */
const LIMIT_PER_PAYLOAD = 10_000
/** What `exceptions` keeps of a text; the span keeps all of it. */
export const NAME_LIMIT_BYTES = 1024
export const MESSAGE_LIMIT_BYTES = 8 * 1024
const STACKTRACE_LIMIT_BYTES = 32 * 1024
const DEBUG_IDS_LIMIT_BYTES = 32 * 1024
/** Characters of cache keys held by a batch. */
const CACHE_LIMIT = 8 * 1024 * 1024

/** Of an exception, what was recorded with it. */
interface ExceptionDetails {
  type: string
  message: string
  stacktrace: string
  debugIds: DebugIds
  escaped: boolean
  timeLow: number
  timeHigh: number
}

const NO_DETAILS = { type: '', message: '', stacktrace: '', debugIds: NO_DEBUG_IDS, escaped: false }

/** The span (or log record) in which exceptions occurred; ids as positions in `bytes`. */
export interface OccurrenceContext {
  bytes: Buffer
  view: DataView
  traceIdStart: number
  spanIdStart: number
  spanName: string
  sessionId: string
}

/**
 * Turns exceptions into rows of `exceptions`, with the finding that each belongs to, and asks for their stacks to be
 * symbolicated.
 */
export class ExceptionDeriver {
  readonly stackRequests: StackRequests
  private readonly table: ExceptionsTable
  private readonly pending: ExceptionDetails[] = []
  private readonly findingIds = new Map<string, string>()
  private heldCharacters = 0
  private frame: PayloadSource = { workspaceId: '', surfaceId: '', receivedAtMs: 0 }
  private derived = 0
  /** Exceptions of this payload that were left underived. */
  overLimit = 0

  constructor(table: ExceptionsTable, recentStacks: RecentStacks) {
    this.table = table
    this.stackRequests = new StackRequests(recentStacks)
  }

  beginPayload(frame: PayloadSource): void {
    this.frame = frame
    this.derived = 0
    this.overLimit = 0
    this.pending.length = 0
    this.stackRequests.mark()
  }

  /** Forgets findings of the last batch. */
  reset(): void {
    this.stackRequests.reset()
    this.findingIds.clear()
    this.heldCharacters = 0
  }

  get hasPending(): boolean {
    return this.pending.length > 0
  }

  /** Notes an exception until it is known whether its span is stored. The attributes from `first` on are its own. */
  note(attributes: Attributes, first: AttributePosition, timeLow: number, timeHigh: number): void {
    if (this.derived + this.pending.length >= LIMIT_PER_PAYLOAD) {
      this.overLimit++
      return
    }
    const details = { ...NO_DETAILS, timeLow, timeHigh }
    readDetails(attributes, first, details)
    this.pending.push(details)
  }

  discardPending(): void {
    this.pending.length = 0
  }

  /** Stores what was noted as occurrences in one span. */
  derivePending(source: number, resource: ResourceEntry, context: OccurrenceContext): void {
    for (const details of this.pending) this.append(source, details, resource, context)
    this.pending.length = 0
  }

  /** A span that failed without recording an exception. */
  deriveFailure(
    message: string,
    timeLow: number,
    timeHigh: number,
    resource: ResourceEntry,
    context: OccurrenceContext,
  ): void {
    if (this.derived >= LIMIT_PER_PAYLOAD) {
      this.overLimit++
      return
    }
    const details = { ...NO_DETAILS, type: context.spanName, message, timeLow, timeHigh }
    this.append(ExceptionSource.spanStatus, details, resource, context)
  }

  private append(source: number, details: ExceptionDetails, resource: ResourceEntry, context: OccurrenceContext): void {
    const { table, frame } = this
    this.derived++
    table.buffer.rows++
    table.workspaceId.fill(table.workspaceId.indexOf(frame.workspaceId), 1)
    table.surfaceId.fill(table.surfaceId.indexOf(frame.surfaceId), 1)
    table.receivedAt.u64(frame.receivedAtMs % 0x1_0000_0000, Math.floor(frame.receivedAtMs / 0x1_0000_0000))
    const findingId = this.findingId(details, resource.serviceNameText)
    table.findingId.rawText(findingId)
    table.traceId.raw(context.bytes, context.view, context.traceIdStart, context.traceIdStart + 16)
    table.spanId.raw(context.bytes, context.view, context.spanIdStart, context.spanIdStart + 8)
    table.occurredAt.u64(details.timeLow, details.timeHigh)
    table.serviceName.fill(table.serviceName.indexOf(resource.serviceNameText), 1)
    table.serviceVersion.fill(table.serviceVersion.indexOf(resource.serviceVersionText), 1)
    table.sessionId.text(context.sessionId)
    table.source.u8(source)
    table.type.text(details.type)
    table.message.text(details.message)
    table.stacktrace.text(details.stacktrace)
    table.spanName.text(context.spanName)
    table.escaped.u8(details.escaped ? 1 : 0)
    table.appendDebugIds(details.debugIds)
    if (details.stacktrace === '') return
    this.stackRequests.note(frame, { ...details, findingId, serviceVersion: resource.serviceVersionText })
  }

  /** One stack throws again and again: finding it by its text takes 1 µs, parsing and hashing it 10 or more. */
  private findingId({ type, message, stacktrace }: ExceptionDetails, serviceName: string): string {
    const { workspaceId, surfaceId } = this.frame
    // All that the id derives from, and lengths, since any of these texts may hold whatever would separate them. A stack
    // of blanks counts as none there, so the message is left out only beside one that says something.
    const withoutStack = stacktrace.trim() === ''
    const lengths = `${serviceName.length} ${type.length} ${withoutStack ? 'message' : 'stack'}`
    const place = withoutStack ? message : stacktrace
    const key = `${workspaceId} ${surfaceId} ${lengths} ${serviceName}${type}${place}`
    const known = this.findingIds.get(key)
    if (known !== undefined) return known
    const id = findingIdOf({ workspaceId, surfaceId, serviceName, type, message, stacktrace })
    this.heldCharacters += key.length
    if (this.heldCharacters > CACHE_LIMIT) {
      this.findingIds.clear()
      this.heldCharacters = key.length
    }
    this.findingIds.set(key, id)
    return id
  }
}

/** Where the attributes of one record begin in the buffers that hold many. */
export interface AttributePosition {
  keyStart: number
  valueStart: number
  count: number
}

function readDetails(attributes: Attributes, first: AttributePosition, details: ExceptionDetails): void {
  const { keys, values } = attributes
  let keyAt = first.keyStart
  let valueAt = first.valueStart
  for (let i = first.count; i < attributes.count; i++) {
    const keyStart = stringStart(keys.bytes, keyAt)
    const valueStart = stringStart(values.bytes, valueAt)
    keyAt = keyStart + stringLength(keys.bytes, keyAt)
    valueAt = valueStart + stringLength(values.bytes, valueAt)
    if (keyAt - keyStart < 14 || keyAt - keyStart > 20) continue
    switch (keys.bytes.toString('latin1', keyStart, keyAt)) {
      case 'exception.type':
        details.type = cutText(values.bytes, valueStart, valueAt, NAME_LIMIT_BYTES)
        break
      case 'exception.message':
        details.message = cutText(values.bytes, valueStart, valueAt, MESSAGE_LIMIT_BYTES)
        break
      case 'exception.stacktrace':
        details.stacktrace = cutText(values.bytes, valueStart, valueAt, STACKTRACE_LIMIT_BYTES)
        break
      case 'exception.debug_ids':
        details.debugIds = readDebugIds(cutText(values.bytes, valueStart, valueAt, DEBUG_IDS_LIMIT_BYTES))
        break
      case 'exception.escaped':
        details.escaped = values.bytes.toString('latin1', valueStart, valueAt) === 'true'
    }
  }
}

/** Where the bytes of the String value at `at` begin. */
function stringStart(bytes: Buffer, at: number): number {
  let next = at
  while ((bytes[next] as number) >= 0x80) next++
  return next + 1
}

function stringLength(bytes: Buffer, at: number): number {
  let length = 0
  for (let next = at, shift = 0; ; next++, shift += 7) {
    const byte = bytes[next] as number
    length |= (byte & 0x7f) << shift
    if (byte < 0x80) return length
  }
}
