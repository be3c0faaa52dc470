import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import type { ScopeColumns } from '../../clickhouse/tables/scope-columns.ts'
import { cutText, TEXT_LIMITS } from '../otlp/protobuf/cut-text.ts'
import { NO_RESOURCE, OtlpBatch } from '../otlp/protobuf/otlp-batch.ts'
import type { PayloadSource, RowRejection } from '../otlp/protobuf/refusal.ts'
import { EmbeddedMessage, type ResourceEntry } from '../otlp/protobuf/resource-cache.ts'
import type { WireCursor } from '../otlp/protobuf/wire.ts'
import { ExceptionRecords } from './exception-records.ts'
import { ExceptionDeriver } from './exceptions.ts'

/** The table of the records. */
interface RecordsTable {
  readonly scope: ScopeColumns
  readonly buffer: TableBuffer
  reserveRows(count: number): void
  commitRows(rows: number): void
}

/** Appends one record to the table, and derives its exceptions. */
interface RecordDecoder {
  /** Records of the payload that have a session id over the limit, and are stored without it. */
  readonly overlongSessionIds: number
  beginPayload(source: PayloadSource): void
  /** Forgets what was remembered of dictionaries, from which keys were removed. */
  clearCache?(): void
  append(wire: WireCursor, start: number, end: number, row: number, resource: ResourceEntry): RowRejection | undefined
}

/** The records of a signal. */
interface Records {
  readonly table: RecordsTable
  readonly createDecoder: (exceptions: ExceptionDeriver) => RecordDecoder
  /** Smaller records are rejected and need no room. */
  readonly minRecordBytes: number
}

/** Rows of a signal whose records may be exceptions, and these exceptions. */
export class RecordsBatch extends OtlpBatch {
  readonly #table: RecordsTable
  readonly #exceptions: ExceptionDeriver
  readonly #decoder: RecordDecoder
  readonly #minRecordBytes: number
  #resource = NO_RESOURCE

  constructor({ table, createDecoder, minRecordBytes }: Records) {
    const records = new ExceptionRecords()
    super(table.scope, table.buffer, records)
    this.#table = table
    this.#exceptions = new ExceptionDeriver(records)
    this.#decoder = createDecoder(this.#exceptions)
    this.#minRecordBytes = minRecordBytes
  }

  protected beginPayload(source: PayloadSource): void {
    this.#decoder.beginPayload(source)
    this.#exceptions.beginPayload(source)
  }

  protected beginResource(message: EmbeddedMessage, schemaUrl: string): void {
    this.#resource = this.scopes.beginResource(message, schemaUrl)
  }

  /** ScopeSpans or ScopeLogs: `InstrumentationScope scope = 1; repeated … records = 2; string schema_url = 3`. */
  protected appendScope(wire: WireCursor, start: number, end: number): void {
    const minRecordBytes = this.#minRecordBytes
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    let rowLimit = 0
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) {
        if (pos - wire.start >= minRecordBytes) rowLimit++
      } else if (tag === 0x0a) message.add(wire.start, pos)
      else if (tag === 0x1a) schemaUrl = cutText(wire.bytes, wire.start, pos, TEXT_LIMITS.schemaUrl)
    }
    if (rowLimit === 0 && minRecordBytes === 0) return
    this.scopes.beginScope(message, schemaUrl)
    this.#table.reserveRows(rowLimit)
    const firstRow = this.#table.buffer.rows
    const resource = this.#resource
    const decoder = this.#decoder
    let row = firstRow
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const recordStart = wire.start
      pos = wire.next
      if (tag !== 0x12 || this.isLeftOut(wire, recordStart, pos, row)) continue
      const rejection = decoder.append(wire, recordStart, pos, row, resource)
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

  protected rewindRows(): void {
    this.#decoder.clearCache?.()
  }
}
