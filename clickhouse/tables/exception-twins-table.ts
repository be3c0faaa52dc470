import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A change of how many equal rows of `exceptions` do not count. Ids are hexadecimal digits. */
export interface ExceptionTwinsRow {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly receivedMs: number
  readonly variantId: string
  readonly traceId: string
  readonly spanId: string
  /** Code of `ExceptionSource`. */
  readonly source: number
  readonly occurredUnixNano: bigint
  readonly serviceName: string
  readonly serviceVersion: string
  readonly sessionId: string
  readonly change: number
  readonly stored: number
}

/** The column buffers of the table `exception_twins`. */
export class ExceptionTwinsTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #receivedAt = new GrowingBuffer()
  readonly #variantId = new GrowingBuffer()
  readonly #traceId = new GrowingBuffer()
  readonly #spanId = new GrowingBuffer()
  readonly #source = new GrowingBuffer()
  readonly #occurredAt = new GrowingBuffer()
  readonly #serviceName = new LowCardinality()
  readonly #serviceVersion = new LowCardinality()
  readonly #sessionId = new GrowingBuffer()
  readonly #change = new GrowingBuffer()
  readonly #stored = new GrowingBuffer()

  readonly buffer = new TableBuffer('exception_twins', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('variant_id', 'FixedString(16)', this.#variantId),
    column('trace_id', 'FixedString(16)', this.#traceId),
    column('span_id', 'FixedString(8)', this.#spanId),
    column('source', "Enum8('span_event' = 1, 'log_record' = 2, 'span_status' = 3)", this.#source),
    column('occurred_at_unix_nano', 'UInt64', this.#occurredAt),
    column('service_name', 'LowCardinality(String)', this.#serviceName),
    column('service_version', 'LowCardinality(String)', this.#serviceVersion),
    column('session_id', 'String', this.#sessionId),
    column('change', 'Int32', this.#change),
    column('stored', 'UInt32', this.#stored),
  ])

  /** Appends a row. */
  append(row: ExceptionTwinsRow): void {
    this.buffer.rows++
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#receivedAt.integer64(row.receivedMs)
    this.#variantId.rawBytes(Buffer.from(row.variantId, 'hex'))
    this.#traceId.rawBytes(Buffer.from(row.traceId, 'hex'))
    this.#spanId.rawBytes(Buffer.from(row.spanId, 'hex'))
    this.#source.u8(row.source)
    this.#occurredAt.u64(Number(row.occurredUnixNano & 0xffff_ffffn), Number(row.occurredUnixNano >> 32n))
    this.#serviceName.fill(this.#serviceName.indexOf(row.serviceName), 1)
    this.#serviceVersion.fill(this.#serviceVersion.indexOf(row.serviceVersion), 1)
    this.#sessionId.text(row.sessionId)
    this.#change.u32(row.change >>> 0)
    this.#stored.u32(row.stored)
  }
}
