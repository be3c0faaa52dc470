import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** Codes of `exceptions.source`: the kind of record in which an occurrence was found. */
export const ExceptionSource = { spanEvent: 1, logRecord: 2, spanStatus: 3 } as const

/** The column buffers of the table `exceptions`, or of `failures`, which has the same columns. */
export class ExceptionsTable {
  readonly workspaceId = new LowCardinality()
  readonly surfaceId = new LowCardinality()
  readonly receivedAt = new GrowingBuffer()
  readonly variantId = new GrowingBuffer()
  readonly findingId = new GrowingBuffer()
  readonly rank = new GrowingBuffer()
  readonly traceId = new GrowingBuffer()
  readonly spanId = new GrowingBuffer()
  readonly parentSpanId = new GrowingBuffer()
  readonly occurredAt = new GrowingBuffer()
  readonly serviceName = new LowCardinality()
  readonly serviceVersion = new LowCardinality()
  readonly sessionId = new GrowingBuffer()
  readonly source = new GrowingBuffer()
  readonly fingerprint = new GrowingBuffer()
  readonly type = new GrowingBuffer()
  readonly message = new GrowingBuffer()
  readonly stacktrace = new GrowingBuffer()
  readonly spanName = new GrowingBuffer()
  readonly topFrame = new GrowingBuffer()
  readonly escaped = new GrowingBuffer()
  readonly browser = new LowCardinality()
  readonly system = new LowCardinality()
  readonly route = new LowCardinality()
  readonly environment = new LowCardinality()
  readonly host = new LowCardinality()
  readonly #debugIdOffsets = new GrowingBuffer()
  readonly #debugIdUrls = new GrowingBuffer()
  readonly #debugIds = new GrowingBuffer()

  readonly buffer: TableBuffer
  readonly #columns = [
    column('workspace_id', 'LowCardinality(String)', this.workspaceId),
    column('surface_id', 'LowCardinality(String)', this.surfaceId),
    column('received_at', "DateTime64(3, 'UTC')", this.receivedAt),
    column('variant_id', 'FixedString(16)', this.variantId),
    column('finding_id', 'FixedString(30)', this.findingId),
    column('rank', 'UInt64', this.rank),
    column('trace_id', 'FixedString(16)', this.traceId),
    column('span_id', 'FixedString(8)', this.spanId),
    column('parent_span_id', 'FixedString(8)', this.parentSpanId),
    column('occurred_at_unix_nano', 'UInt64', this.occurredAt),
    column('service_name', 'LowCardinality(String)', this.serviceName),
    column('service_version', 'LowCardinality(String)', this.serviceVersion),
    column('session_id', 'String', this.sessionId),
    column('source', "Enum8('span_event' = 1, 'log_record' = 2, 'span_status' = 3)", this.source),
    column('fingerprint', 'String', this.fingerprint),
    column('type', 'String', this.type),
    column('message', 'String', this.message),
    column('stacktrace', 'String', this.stacktrace),
    column('span_name', 'String', this.spanName),
    column('top_frame', 'String', this.topFrame),
    column('escaped', 'Bool', this.escaped),
    column('browser', 'LowCardinality(String)', this.browser),
    column('system', 'LowCardinality(String)', this.system),
    column('route', 'LowCardinality(String)', this.route),
    column('environment', 'LowCardinality(String)', this.environment),
    column('host', 'LowCardinality(String)', this.host),
    column('debug_ids', 'Map(String, String)', this.#debugIdOffsets, this.#debugIdUrls, this.#debugIds),
  ]

  constructor(table: 'exceptions' | 'failures' = 'exceptions') {
    this.buffer = new TableBuffer(table, this.#columns)
  }

  /** Appends the debug ids of a row. */
  appendDebugIds(debugIds: ReadonlyMap<string, string>): void {
    // The current number is read from the buffer, because a refused payload may have been removed from it.
    const offsets = this.#debugIdOffsets
    const before = offsets.length === 0 ? 0 : offsets.view.getUint32(offsets.length - 8, true)
    for (const [url, debugId] of debugIds) {
      this.#debugIdUrls.text(url)
      this.#debugIds.text(debugId)
    }
    offsets.u64(before + debugIds.size, 0)
  }

  /** Gives the rows of these variants, which are hexadecimal digits, their findings, unless the rank of a row is as high. */
  moveVariants(memberships: ReadonlyMap<string, { readonly findingId: string; readonly rank: bigint }>): void {
    for (let row = 0; row < this.buffer.rows; row++) {
      const found = memberships.get(this.variantId.bytes.toString('hex', row * 16, row * 16 + 16))
      if (found === undefined || found.rank <= this.rank.bytes.readBigUInt64LE(row * 8)) continue
      this.findingId.bytes.write(found.findingId, row * 30, 'latin1')
      this.rank.bytes.writeBigUInt64LE(found.rank, row * 8)
    }
  }
}
