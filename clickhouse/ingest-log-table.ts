import { GrowingBuffer } from './native/growing-buffer.ts'
import { LowCardinality } from './native/low-cardinality.ts'
import { column, TableBuffer } from './native/table-buffer.ts'

/** A row of `ingest_log`: what became of the requests of one job and surface. */
export interface IngestLogEntry {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Arrival of the first of them. */
  receivedAtMs: number
  readonly jobId: string
  readonly signal: string
  payloads: number
  /** As they were sent. */
  bytes: number
  rows: number
  /** Records left out, and requests dead-lettered, by reason. */
  readonly rejected: Map<string, number>
  readonly deadLettered: Map<string, number>
}

/** The column buffers of the table `ingest_log` (migration 0005). */
export class IngestLogTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #receivedAt = new GrowingBuffer()
  readonly #jobId = new GrowingBuffer()
  readonly #signal = new LowCardinality()
  readonly #payloads = new GrowingBuffer()
  readonly #bytes = new GrowingBuffer()
  readonly #rows = new GrowingBuffer()
  readonly #rejected = new CountsColumn()
  readonly #deadLettered = new CountsColumn()

  readonly buffer = new TableBuffer('ingest_log', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('job_id', 'String', this.#jobId),
    column('signal', 'LowCardinality(String)', this.#signal),
    column('payloads', 'UInt32', this.#payloads),
    column('bytes', 'UInt64', this.#bytes),
    column('rows', 'UInt64', this.#rows),
    column('rejected', 'Map(String, UInt64)', ...this.#rejected.parts),
    column('dead_lettered', 'Map(String, UInt64)', ...this.#deadLettered.parts),
  ])

  append(entry: IngestLogEntry): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(entry.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(entry.surfaceId), 1)
    appendU64(this.#receivedAt, entry.receivedAtMs)
    this.#jobId.text(entry.jobId)
    this.#signal.fill(this.#signal.indexOf(entry.signal), 1)
    this.#payloads.u32(entry.payloads)
    appendU64(this.#bytes, entry.bytes)
    appendU64(this.#rows, entry.rows)
    this.#rejected.append(entry.rejected)
    this.#deadLettered.append(entry.deadLettered)
    this.buffer.rows++
  }
}

/** A Map(String, UInt64). */
class CountsColumn {
  readonly parts = [new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer()] as const
  #entries = 0

  append(counts: ReadonlyMap<string, number>): void {
    const [offsets, keys, values] = this.parts
    for (const [reason, count] of counts) {
      keys.text(reason)
      appendU64(values, count)
    }
    this.#entries += counts.size
    appendU64(offsets, this.#entries)
  }
}

function appendU64(buffer: GrowingBuffer, value: number): void {
  buffer.u64(value % 0x1_0000_0000, Math.floor(value / 0x1_0000_0000))
}
