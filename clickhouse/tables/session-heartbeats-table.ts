import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A row of `session_heartbeats`: absent values are empty texts. */
interface SessionHeartbeatRow {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly sessionId: string
  readonly receivedAtMs: number
  readonly deviceId: string
  readonly visitorId: string
  readonly fpHash: string
}

/** The column buffers of the table `session_heartbeats`. */
export class SessionHeartbeatsTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #sessionId = new GrowingBuffer()
  readonly #receivedAt = new GrowingBuffer()
  readonly #deviceId = new GrowingBuffer()
  readonly #visitorId = new GrowingBuffer()
  readonly #fpHash = new GrowingBuffer()

  readonly buffer = new TableBuffer('session_heartbeats', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('session_id', 'String', this.#sessionId),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('device_id', 'String', this.#deviceId),
    column('visitor_id', 'String', this.#visitorId),
    column('fp_hash', 'String', this.#fpHash),
  ])

  /** Appends a row. */
  append(row: SessionHeartbeatRow): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#sessionId.text(row.sessionId)
    this.#receivedAt.integer64(row.receivedAtMs)
    this.#deviceId.text(row.deviceId)
    this.#visitorId.text(row.visitorId)
    this.#fpHash.text(row.fpHash)
    this.buffer.rows++
  }
}
