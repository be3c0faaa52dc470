import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A row of `finding_frames`. */
export interface FindingFramesRow {
  readonly workspaceId: string
  readonly surfaceId: string
  /** 16 bytes as hexadecimal digits. */
  readonly variantId: string
  readonly serviceVersion: string
  readonly releaseSlug: string
  readonly receivedAtMs: number
  readonly occurredAtUnixNano: string
  readonly symbolicatedAtMs: number
  /** Sequence of the latest known manifest; 0 without a manifest. */
  readonly sequence: number
  readonly frameCount: number
  readonly resolvedFrameCount: number
  /** The frames as JSON. */
  readonly frames: string
}

/** The column buffers of the table `finding_frames`. */
export class FindingFramesTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #variantId = new GrowingBuffer()
  readonly #serviceVersion = new LowCardinality()
  readonly #releaseSlug = new GrowingBuffer()
  readonly #receivedAt = new GrowingBuffer()
  readonly #occurredAt = new GrowingBuffer()
  readonly #symbolicatedAt = new GrowingBuffer()
  readonly #rank = new GrowingBuffer()
  readonly #frameCount = new GrowingBuffer()
  readonly #resolvedFrameCount = new GrowingBuffer()
  readonly #frames = new GrowingBuffer()

  readonly buffer = new TableBuffer('finding_frames', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('variant_id', 'FixedString(16)', this.#variantId),
    column('service_version', 'LowCardinality(String)', this.#serviceVersion),
    column('release_slug', 'String', this.#releaseSlug),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('occurred_at_unix_nano', 'UInt64', this.#occurredAt),
    column('symbolicated_at', "DateTime64(3, 'UTC')", this.#symbolicatedAt),
    column('rank', 'UInt64', this.#rank),
    column('frame_count', 'UInt16', this.#frameCount),
    column('resolved_frame_count', 'UInt16', this.#resolvedFrameCount),
    column('frames', 'String', this.#frames),
  ])

  /** Appends a row. */
  append(row: FindingFramesRow): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#variantId.rawBytes(Buffer.from(row.variantId, 'hex'))
    this.#serviceVersion.fill(this.#serviceVersion.indexOf(row.serviceVersion), 1)
    this.#releaseSlug.text(row.releaseSlug)
    this.#receivedAt.integer64(row.receivedAtMs)
    appendBigInt(this.#occurredAt, BigInt(row.occurredAtUnixNano))
    this.#symbolicatedAt.integer64(row.symbolicatedAtMs)
    appendBigInt(this.#rank, ((row.resolvedFrameCount > 0 ? 1n : 0n) << 63n) + BigInt(row.sequence))
    this.#frameCount.u16(row.frameCount)
    this.#resolvedFrameCount.u16(row.resolvedFrameCount)
    this.#frames.text(row.frames)
    this.buffer.rows++
  }
}

function appendBigInt(buffer: GrowingBuffer, value: bigint): void {
  buffer.u64(Number(value & 0xffff_ffffn), Number((value >> 32n) & 0xffff_ffffn))
}
