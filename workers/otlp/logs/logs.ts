import { ExceptionsTable } from '../../../clickhouse/tables/exceptions-table.ts'
import { LogsTable } from '../../../clickhouse/tables/logs-table.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { ExceptionDeriver } from '../../exceptions/exceptions.ts'
import { createRecentStacks, type RecentStacks } from '../../exceptions/stack-requests.ts'
import { Attributes } from '../protobuf/attributes.ts'
import { cutText, TEXT_LIMITS } from '../protobuf/cut-text.ts'
import { NO_RESOURCE, OtlpBatch } from '../protobuf/otlp-batch.ts'
import type { PayloadSource } from '../protobuf/refusal.ts'
import { EmbeddedMessage } from '../protobuf/resource-cache.ts'
import type { WireCursor } from '../protobuf/wire.ts'
import { LogDecoder } from './log-decoder.ts'

/** Creates a batch of rows of `logs` and `exceptions`, decoded from ExportLogsServiceRequest messages. */
export function createLogsBatch(recentStacks: RecentStacks = createRecentStacks()): OtlpBatch {
  const attributes = new Attributes()
  const table = new LogsTable(attributes)
  const exceptionsTable = new ExceptionsTable()
  const exceptions = new ExceptionDeriver(exceptionsTable, recentStacks)
  return new LogsBatch(table, exceptionsTable, exceptions, new LogDecoder(table, attributes, exceptions))
}

class LogsBatch extends OtlpBatch {
  readonly #table: LogsTable
  readonly #exceptions: ExceptionDeriver
  readonly #decoder: LogDecoder
  #resource = NO_RESOURCE

  constructor(table: LogsTable, exceptionsTable: ExceptionsTable, exceptions: ExceptionDeriver, decoder: LogDecoder) {
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
    this.#decoder.beginPayload(source)
    this.#exceptions.beginPayload(source)
  }

  protected beginResource(message: EmbeddedMessage, schemaUrl: string): void {
    this.#resource = this.scopes.beginResource(message, schemaUrl)
  }

  /** ScopeLogs: `InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3`. */
  protected appendScope(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    let rowLimit = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) rowLimit++
      else if (tag === 0x0a) message.add(wire.start, pos)
      else if (tag === 0x1a) schemaUrl = cutText(wire.bytes, wire.start, pos, TEXT_LIMITS.schemaUrl)
    }
    if (rowLimit === 0) return
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
