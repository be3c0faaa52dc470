import { ExceptionsTable } from '../../../clickhouse/tables/exceptions-table.ts'
import { SpansTable } from '../../../clickhouse/tables/spans-table.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import { createRecentStacks, type RecentStacks } from '../../exceptions/stack-requests.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { cutText, TEXT_LIMITS } from '../protobuf/cut-text.ts'
import { NO_RESOURCE, OtlpBatch } from '../protobuf/otlp-batch.ts'
import type { PayloadSource } from '../protobuf/refusal.ts'
import { EmbeddedMessage } from '../protobuf/resource-cache.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { SpanDecoder } from './span-decoder.ts'

/** Size of a span that has only its two ids. Smaller spans are rejected and need no room. */
const MIN_SPAN_BYTES = 28

/** Creates a batch of rows of `spans` and `exceptions`, decoded from ExportTraceServiceRequest messages. */
export function createSpansBatch(recentStacks: RecentStacks = createRecentStacks()): OtlpBatch {
  const attributes = { span: new Attributes(), event: new Attributes(), link: new Attributes() }
  const table = new SpansTable(attributes.span, attributes.event, attributes.link)
  const exceptionsTable = new ExceptionsTable()
  const exceptions = new ExceptionDeriver(exceptionsTable, recentStacks)
  return new SpansBatch(table, exceptionsTable, exceptions, new SpanDecoder(table, attributes, exceptions))
}

class SpansBatch extends OtlpBatch {
  readonly #table: SpansTable
  readonly #exceptions: ExceptionDeriver
  readonly #decoder: SpanDecoder
  #resource = NO_RESOURCE

  constructor(table: SpansTable, exceptionsTable: ExceptionsTable, exceptions: ExceptionDeriver, decoder: SpanDecoder) {
    super(table.scope, table.buffer, [exceptionsTable.buffer])
    this.#table = table
    this.#exceptions = exceptions
    this.#decoder = decoder
  }

  override stackRequests(): readonly PayloadFrame[] {
    return this.#exceptions.stackRequests.frames
  }

  override finished(leftOut: ReadonlySet<string>): void {
    this.#exceptions.stackRequests.finished(leftOut)
  }

  protected beginPayload(source: PayloadSource): void {
    this.#decoder.beginPayload()
    this.#exceptions.beginPayload(source)
  }

  protected beginResource(message: EmbeddedMessage, schemaUrl: string): void {
    this.#resource = this.scopes.beginResource(message, schemaUrl)
  }

  /** ScopeSpans: `InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3`. */
  protected appendScope(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    let rowLimit = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) {
        if (pos - wire.start >= MIN_SPAN_BYTES) rowLimit++
      } else if (tag === 0x0a) message.add(wire.start, pos)
      else if (tag === 0x1a) schemaUrl = cutText(wire.bytes, wire.start, pos, TEXT_LIMITS.schemaUrl)
    }
    this.scopes.beginScope(message, schemaUrl)
    this.#table.reserveRows(rowLimit)
    const firstRow = this.#table.buffer.rows
    const resource = this.#resource
    const decoder = this.#decoder
    let row = firstRow
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag !== 0x12 || this.isStored(row)) continue
      const rejection = decoder.append(wire, wire.start, pos, row, resource)
      if (rejection === undefined) row++
      else this.reject(rejection, row)
    }
    this.#table.commitRows(row)
    this.scopes.fill(row - firstRow)
  }

  protected endPayload(): void {
    this.leaveOut('exceptions_over_limit', this.#exceptions.overLimit)
    this.leaveOut('findings_over_limit', this.#exceptions.findingsOverLimit)
    this.leaveOut('session_id_too_long', this.#decoder.overlongSessionIds)
  }

  protected rewindPayload(): void {
    this.#exceptions.stackRequests.rewind()
  }

  protected markDerived(): void {
    this.#exceptions.stackRequests.markJob()
  }

  protected rewindDerived(): void {
    this.#exceptions.stackRequests.rewindJob()
  }

  protected resetRows(): void {
    this.#exceptions.reset()
  }
}
