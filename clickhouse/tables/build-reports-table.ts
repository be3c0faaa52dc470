import type { BuildReport } from '../../schemas/http/releases/schemas.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A row of `build_reports`: a report with its workspace, surface and release. */
interface BuildReportRow extends BuildReport {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly releaseSlug: string
  readonly receivedAtMs: number
}

/** The column buffers of the table `build_reports`. */
export class BuildReportsTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #releaseSlug = new GrowingBuffer()
  readonly #receivedAt = new GrowingBuffer()
  readonly #result = new LowCardinality()
  readonly #discover = new NullableAmount()
  readonly #createRelease = new NullableAmount()
  readonly #upload = new NullableAmount()
  readonly #cleanup = new NullableAmount()
  readonly #total = new NullableAmount()
  readonly #fileCount = new NullableAmount()
  readonly #totalBytes = new NullableAmount()
  readonly #preflight = new NullableAmount()

  readonly buffer = new TableBuffer('build_reports', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('release_slug', 'String', this.#releaseSlug),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('result', 'LowCardinality(String)', this.#result),
    this.#discover.column('discover'),
    this.#createRelease.column('create_release'),
    this.#upload.column('upload'),
    this.#cleanup.column('cleanup'),
    this.#total.column('total'),
    this.#fileCount.column('file_count'),
    this.#totalBytes.column('total_bytes'),
    this.#preflight.column('preflight'),
  ])

  /** Appends a row. */
  append(row: BuildReportRow): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#releaseSlug.text(row.releaseSlug)
    this.#receivedAt.integer64(row.receivedAtMs)
    this.#result.fill(this.#result.indexOf(row.result ?? ''), 1)
    this.#discover.append(row.discover)
    this.#createRelease.append(row.createRelease)
    this.#upload.append(row.upload)
    this.#cleanup.append(row.cleanup)
    this.#total.append(row.total)
    this.#fileCount.append(row.fileCount)
    this.#totalBytes.append(row.totalBytes)
    this.#preflight.append(row.preflight)
    this.buffer.rows++
  }
}

/** A Nullable(UInt64) column: a byte per row that is 1 for NULL, and the values, which are 0 for NULL. */
class NullableAmount {
  readonly #isNull = new GrowingBuffer()
  readonly #value = new GrowingBuffer()

  column(name: string) {
    return column(name, 'Nullable(UInt64)', this.#isNull, this.#value)
  }

  /** Appends a row. */
  append(value: number | undefined): void {
    this.#isNull.u8(value === undefined ? 1 : 0)
    this.#value.integer64(value ?? 0)
  }
}
