import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A row of `replay_chunks`. Times and counts are whole numbers within the range of their columns. */
interface ReplayChunkRow {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly sessionId: string
  readonly receivedAtMs: number
  readonly windowId: string
  readonly segmentId: string
  /** -1 if the segment id is not a number. */
  readonly segmentNumber: number
  readonly firstTsMs: number
  readonly lastTsMs: number
  readonly activityCount: number
  readonly eventCount: number
  readonly hasFullSnapshot: boolean
  readonly firstEventMs: number
  readonly lastEventMs: number
  readonly storedBytes: number
  readonly decompressedBytes: number
  /** SHA-256 of the decompressed bytes. */
  readonly sha256: Buffer
  /** SHA-256 of the bytes as sent. */
  readonly sentSha256: Buffer
  readonly objectKey: string
}

/** The column buffers of the table `replay_chunks`. */
export class ReplayChunksTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #sessionId = new GrowingBuffer()
  readonly #receivedAt = new GrowingBuffer()
  readonly #windowId = new GrowingBuffer()
  readonly #segmentId = new GrowingBuffer()
  readonly #segmentNumber = new GrowingBuffer()
  readonly #firstTs = new GrowingBuffer()
  readonly #lastTs = new GrowingBuffer()
  readonly #activityCount = new GrowingBuffer()
  readonly #eventCount = new GrowingBuffer()
  readonly #hasFullSnapshot = new GrowingBuffer()
  readonly #firstEvent = new GrowingBuffer()
  readonly #lastEvent = new GrowingBuffer()
  readonly #storedBytes = new GrowingBuffer()
  readonly #decompressedBytes = new GrowingBuffer()
  readonly #sha256 = new GrowingBuffer()
  readonly #sentSha256 = new GrowingBuffer()
  readonly #objectKey = new GrowingBuffer()

  readonly buffer = new TableBuffer('replay_chunks', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('session_id', 'String', this.#sessionId),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('window_id', 'String', this.#windowId),
    column('segment_id', 'String', this.#segmentId),
    column('segment_number', 'Int64', this.#segmentNumber),
    column('first_ts_ms', 'Int64', this.#firstTs),
    column('last_ts_ms', 'Int64', this.#lastTs),
    column('activity_count', 'UInt32', this.#activityCount),
    column('event_count', 'UInt32', this.#eventCount),
    column('has_full_snapshot', 'Bool', this.#hasFullSnapshot),
    column('first_event_ms', 'Int64', this.#firstEvent),
    column('last_event_ms', 'Int64', this.#lastEvent),
    column('stored_bytes', 'UInt64', this.#storedBytes),
    column('decompressed_bytes', 'UInt64', this.#decompressedBytes),
    column('sha256', 'FixedString(32)', this.#sha256),
    column('sent_sha256', 'FixedString(32)', this.#sentSha256),
    column('object_key', 'String', this.#objectKey),
  ])

  /** Appends a row. */
  append(row: ReplayChunkRow): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#sessionId.text(row.sessionId)
    this.#receivedAt.integer64(row.receivedAtMs)
    this.#windowId.text(row.windowId)
    this.#segmentId.text(row.segmentId)
    this.#segmentNumber.integer64(row.segmentNumber)
    this.#firstTs.integer64(row.firstTsMs)
    this.#lastTs.integer64(row.lastTsMs)
    this.#activityCount.u32(row.activityCount)
    this.#eventCount.u32(row.eventCount)
    this.#hasFullSnapshot.u8(row.hasFullSnapshot ? 1 : 0)
    this.#firstEvent.integer64(row.firstEventMs)
    this.#lastEvent.integer64(row.lastEventMs)
    this.#storedBytes.integer64(row.storedBytes)
    this.#decompressedBytes.integer64(row.decompressedBytes)
    appendDigest(this.#sha256, row.sha256)
    appendDigest(this.#sentSha256, row.sentSha256)
    this.#objectKey.text(row.objectKey)
    this.buffer.rows++
  }
}

function appendDigest(column: GrowingBuffer, digest: Buffer): void {
  column.raw(digest, new DataView(digest.buffer, digest.byteOffset, digest.length), 0, 32)
}
