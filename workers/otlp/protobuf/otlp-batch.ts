import { RowsTooLarge } from '../../../clickhouse/native/growing-buffer.ts'
import { RowsBudget } from '../../../clickhouse/native/rows-budget.ts'
import type { TableBuffer } from '../../../clickhouse/native/table-buffer.ts'
import type { ScopeColumns } from '../../../clickhouse/tables/scope-columns.ts'
import type { Scrubber } from '../../../shared/scrubbing/scrubber.ts'
import { requestColumnBytes } from '../../sink/job-limits.ts'
import {
  type AppendResult,
  blocksOf,
  type DroppedRecords,
  type PassedOnRecords,
  type RowBatch,
  type TableBlock,
} from '../../sink/row-batch.ts'
import { uncounted } from './any-value.ts'
import { cutText, TEXT_LIMITS } from './cut-text.ts'
import {
  MAX_REJECTED_INDEXES,
  NO_RECORD,
  type PayloadSource,
  Refusal,
  type RejectedRows,
  type RowRejection,
  UNREADABLE_RECORD,
} from './refusal.ts'
import { EmbeddedMessage, type ResourceEntry } from './resource-cache.ts'
import { ScopeWriter } from './scope-writer.ts'
import { scrubMessage } from './scrub-message.ts'
import { WireCursor } from './wire.ts'

/** Finds the records that rules of their workspace drop (docs/api/dropping.md), of one request at a time. */
export interface RecordDropper {
  /** Begins a request whose records are for a table. Returns whether a rule may drop any. */
  begin(table: string): boolean
  beginResource(message: EmbeddedMessage): void
  /** Begins the points of a Metric, which are messages of this name. `message` has its other fields. */
  beginMetric(message: EmbeddedMessage, pointMessage: string): void
  /** Returns whether a rule drops the record `[start, end)` of the current resource, and counts it. */
  drops(wire: WireCursor, start: number, end: number): boolean
  /** Returns what was dropped of the request, by the name of the rule; undefined if nothing was. */
  takeDropped(): ReadonlyMap<string, DroppedRecords> | undefined
}

/**
 * Rows of one OTLP signal. Decodes Export…ServiceRequest messages in one pass from wire bytes to column buffers. The
 * three signals have the same envelope: `request { repeated = 1 }`, then `Resource resource = 1; repeated Scope… = 2;
 * string schema_url = 3`. Protobuf allows a resource to follow its records, so the fields of each envelope message are
 * skimmed for it first, which takes about 4 % of the pass. Subclasses read the scopes and their records.
 */
export abstract class OtlpBatch implements RowBatch {
  protected readonly scopes: ScopeWriter
  /** Table of the signal. Its rows are those that `append` reports. */
  readonly #table: TableBuffer
  readonly passedOn: PassedOnRecords | undefined
  readonly #buffers: readonly TableBuffer[]
  readonly #budget: RowsBudget
  /** Bytes of the tables between payloads. Each payload ends by counting them once, which the next one begins with. */
  #usedBytes = 0
  #rejected: RejectedRows = {}
  /** Records of the payload without a row: rejected ones, and those that are not selected. */
  #leftOutRows = 0
  #firstRow = 0
  #only: ReadonlySet<number> | undefined
  #isJson = false
  /** Returns the scrubber of a workspace. Without it, nothing is scrubbed. */
  scrubberOf: ((workspaceId: string) => Scrubber | undefined) | undefined
  #scrubber: Scrubber | undefined
  /** Returns what drops records of a workspace. Without it, and for a workspace without rules, nothing is dropped. */
  dropperOf: ((workspaceId: string) => RecordDropper | undefined) | undefined
  /** Set if a rule may drop records of the current payload. */
  protected dropper: RecordDropper | undefined

  constructor(columns: ScopeColumns, table: TableBuffer, passedOn?: PassedOnRecords) {
    this.scopes = new ScopeWriter(columns)
    this.#table = table
    this.passedOn = passedOn
    this.#buffers = passedOn === undefined ? [table] : [table, passedOn.buffer]
    this.#budget = new RowsBudget(this.#buffers.flatMap(buffer => buffer.leaves.all))
    this.#begin()
  }

  get rows(): number {
    return this.#table.rows
  }

  get bytes(): number {
    return this.#usedBytes
  }

  get capacityBytes(): number {
    return this.#budget.capacityBytes
  }

  tables(): readonly TableBlock[] {
    return blocksOf([this.#table])
  }

  append(source: PayloadSource, body: Buffer, limitBytes = requestColumnBytes(body.length)): AppendResult {
    const rowsBefore = this.#table.rows
    this.#firstRow = rowsBefore
    this.#rejected = {}
    this.#leftOutRows = 0
    this.#only = source.only
    this.#isJson = source.contentType === 'application/json'
    this.#budget.begin(limitBytes, this.#usedBytes)
    this.#useScrubber(this.scrubberOf?.(source.workspaceId))
    const dropper = this.dropperOf?.(source.workspaceId)
    this.dropper = dropper?.begin(this.#table.table) ? dropper : undefined
    try {
      const scrubber = this.#scrubber
      const request = scrubber?.readsTexts ? scrubMessage(scrubber, this.#table.table, body) : body
      this.scopes.beginPayload(source)
      this.beginPayload(source)
      this.#readRequest(request)
      const isEmpty = this.#table.rows === rowsBefore && this.#leftOutRows === 0
      if (isEmpty && body.length > 0 && !this.isIdle(body)) throw NO_RECORD
      this.endPayload()
      this.#keepRows()
    } catch (error) {
      for (const buffer of this.#buffers) buffer.rewind()
      this.scopes.clearCache()
      this.rewindRows()
      if (error instanceof Refusal) return { ok: false, reason: error.reason }
      if (error instanceof RowsTooLarge) return { ok: false, reason: 'rows_too_large' }
      throw error
    }
    const rows = this.#table.rows - rowsBefore
    const scrubbed = rows > 0 ? this.#scrubber?.takeCounts() : undefined
    return { ok: true, rows, rejected: this.#rejected, scrubbed, dropped: this.dropper?.takeDropped() }
  }

  markJob(): void {
    for (const buffer of this.#buffers) buffer.markJob()
  }

  rewindJob(): void {
    for (const buffer of this.#buffers) buffer.rewindJob()
    this.#begin()
    this.rewindRows()
  }

  reset(): void {
    for (const buffer of this.#buffers) buffer.reset()
    this.#begin()
    this.rewindRows()
  }

  shrink(): void {
    for (const buffer of this.#buffers) buffer.shrink()
    this.#begin()
    this.rewindRows()
  }

  /** Reports whether a payload without a record is a valid export of nothing. Metrics override this. */
  protected isIdle(_body: Buffer): boolean {
    return false
  }

  /** Prepares for the rows of a payload. */
  protected abstract beginPayload(source: PayloadSource): void
  /** Begins the resource of the scopes that follow. */
  protected abstract beginResource(message: EmbeddedMessage, schemaUrl: string): void
  /** Appends the records of the scope message `[start, end)`, for example a ScopeSpans. */
  protected abstract appendScope(wire: WireCursor, start: number, end: number): void
  /** Forgets what was converted by a scrubber, and is remembered by its bytes. */
  protected forgetScrubbed(): void {}
  /** Runs after the last record of a payload. */
  protected abstract endPayload(): void
  /** Removes what a payload, a job or the batch has left, except from the tables and the scopes. */
  protected abstract rewindRows(): void

  /**
   * Reports whether the record `[start, end)` is left out before it is read: its request is replayed and the record is
   * stored already (docs/api/dead-letters.md#replay-letters), it had a JSON value that does not fit, or a rule drops it.
   * `row` is the number of the row that it would have.
   */
  protected isLeftOut(wire: WireCursor, start: number, end: number, row: number): boolean {
    this.#scrubber?.counts.mark()
    if (this.#only === undefined && !this.#isJson && this.dropper === undefined) return false
    return this.#isStoredOrUnreadable(wire, start, end, row) || this.#isDropped(wire, start, end)
  }

  #isStoredOrUnreadable(wire: WireCursor, start: number, end: number, row: number): boolean {
    if (this.#only !== undefined && !this.#only.has(row - this.#firstRow + this.#leftOutRows)) {
      this.#leftOutRows++
      return true
    }
    if (!this.#isJson || end - start !== 4 || wire.view.getUint32(start, true) !== UNREADABLE_RECORD) return false
    this.reject('invalid_json_value', row)
    return true
  }

  #isDropped(wire: WireCursor, start: number, end: number): boolean {
    const { dropper } = this
    if (dropper === undefined || !uncounted(wire, () => dropper.drops(wire, start, end))) return false
    this.#leftOutRows++
    return true
  }

  /** Counts a record that is left out of the current payload. `row` is the number of the row that it would have. */
  protected reject(reason: RowRejection, row: number): void {
    // Its values are not stored. A record is not read before `isLeftOut`, so these are its own.
    this.#scrubber?.counts.rewind()
    const index = row - this.#firstRow + this.#leftOutRows++
    this.#rejected[reason] ??= { count: 0, indexes: [] }
    const { indexes } = this.#rejected[reason]
    this.#rejected[reason].count++
    if (indexes.length < MAX_REJECTED_INDEXES) indexes.push(index)
  }

  /** Counts what is left out of the current payload while the records that contain it are stored. */
  protected leaveOut(reason: RowRejection, count: number): void {
    if (count > 0) this.#rejected[reason] = { count, indexes: [] }
  }

  /** Begins with the rows that there are, after rows were removed. */
  #begin(): void {
    this.scopes.clearCache()
    this.#budget.begin(Number.POSITIVE_INFINITY, 0)
    this.#keepRows()
  }

  /** Ends a payload: the next one begins with its rows. Throws `RowsTooLarge` if they exceed the budget. */
  #keepRows(): void {
    const buffers = this.#buffers
    let usedBytes = 0
    for (let i = 0; i < buffers.length; i++) usedBytes += (buffers[i] as TableBuffer).measure()
    this.#budget.end(usedBytes)
    for (let i = 0; i < buffers.length; i++) (buffers[i] as TableBuffer).keepMeasured()
    this.#usedBytes = usedBytes
  }

  /** Resources of equal bytes are other ones by other rules, so that those are forgotten. Hardly any workspace has its own. */
  #useScrubber(scrubber: Scrubber | undefined): void {
    if (scrubber !== this.#scrubber) {
      this.scopes.clearCache()
      this.forgetScrubbed()
    }
    this.#scrubber = scrubber
    // A request that was refused has left its counts.
    scrubber?.takeCounts()
  }

  #readRequest(body: Buffer): void {
    const wire = new WireCursor(body, this.#scrubber)
    for (let pos = 0; pos < body.length; ) {
      const tag = wire.readField(pos, body.length)
      pos = wire.next
      if (tag === 0x0a) this.#readResource(wire, wire.start, pos)
    }
  }

  #readResource(wire: WireCursor, start: number, end: number): void {
    const message = new EmbeddedMessage(wire)
    let schemaUrl = ''
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      const contentStart = wire.start
      pos = wire.next
      if (tag === 0x0a) message.add(contentStart, pos)
      else if (tag === 0x1a) schemaUrl = cutText(wire.bytes, contentStart, pos, TEXT_LIMITS.schemaUrl)
    }
    this.beginResource(message, schemaUrl)
    const { dropper } = this
    if (dropper !== undefined) uncounted(wire, () => dropper.beginResource(message))
    for (let pos = start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x12) this.appendScope(wire, wire.start, pos)
    }
  }
}

/** A resource that is not read yet. */
export const NO_RESOURCE: ResourceEntry = {
  resource: 0,
  serviceName: 0,
  serviceVersion: 0,
  droppedAttributesCount: 0,
  serviceNameText: '',
  serviceVersionText: '',
  sessionId: '',
  places: new Map(),
}
