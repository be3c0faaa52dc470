import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A row of `source_maps`. */
export interface SourceMapEntry {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly debugId: string
  readonly releaseSlug: string
  readonly sequence: number
  /** SHA-256 of the map in hex, 64 characters. */
  readonly sha256: string
  readonly size: number
  readonly chunkUrl: string
  readonly path: string
  readonly completedAtMs: number
}

/** The column buffers of the table `source_maps`. */
export class SourceMapsTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #debugId = new GrowingBuffer()
  readonly #releaseSlug = new GrowingBuffer()
  readonly #sequence = new GrowingBuffer()
  readonly #sha256 = new GrowingBuffer()
  readonly #size = new GrowingBuffer()
  readonly #chunkUrl = new GrowingBuffer()
  readonly #path = new GrowingBuffer()
  readonly #completedAt = new GrowingBuffer()

  readonly buffer = new TableBuffer('source_maps', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('debug_id', 'String', this.#debugId),
    column('release_slug', 'String', this.#releaseSlug),
    column('sequence', 'UInt64', this.#sequence),
    column('sha256', 'FixedString(64)', this.#sha256),
    column('size', 'UInt32', this.#size),
    column('chunk_url', 'String', this.#chunkUrl),
    column('path', 'String', this.#path),
    column('completed_at', "DateTime64(3, 'UTC')", this.#completedAt),
  ])

  /** Appends a row. */
  append(row: SourceMapEntry): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#debugId.text(row.debugId)
    this.#releaseSlug.text(row.releaseSlug)
    this.#sequence.integer64(row.sequence)
    this.#sha256.rawText(row.sha256)
    this.#size.u32(row.size)
    this.#chunkUrl.text(row.chunkUrl)
    this.#path.text(row.path)
    this.#completedAt.integer64(row.completedAtMs)
    this.buffer.rows++
  }
}
