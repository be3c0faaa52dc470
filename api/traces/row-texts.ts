import type { ColumnsRow } from '../../clickhouse/queries/traces/select-trace-columns.ts'
import { type JsonWriter, jsonTextBytes } from './json-writer.ts'

/** Number of texts of a row that a response shows. The ids of findings follow. */
export const SHOWN_TEXTS = 5
/** The texts of a row. */
export const TEXT = { name: 0, serviceName: 1, statusMessage: 2, sessionId: 3, httpRoute: 4 } as const

/**
 * The shown texts of rows, as ClickHouse sent them. They are copied into a response without becoming strings in between, of which
 * 1,000 spans left 435 KB and more to the garbage collector.
 */
export class RowTexts {
  /** The chunk of each row. */
  readonly #chunks: Buffer[] = []
  /** Start and end of each text. */
  readonly #bounds: number[] = []
  #totalBytes = 0

  /** Bytes of the texts of all rows. */
  get totalBytes(): number {
    return this.#totalBytes
  }

  add({ bytes, starts, ends }: ColumnsRow): void {
    this.#chunks.push(bytes)
    for (let text = 0; text < SHOWN_TEXTS; text++) {
      const start = starts[text] ?? 0
      const end = ends[text] ?? 0
      this.#bounds.push(start, end)
      this.#totalBytes += end - start
    }
  }

  /** Returns the bytes that the texts of a row have in JSON. */
  jsonBytes(row: number): number {
    const chunk = this.#chunks[row] as Buffer
    let size = 0
    for (let text = 0; text < SHOWN_TEXTS; text++)
      size += jsonTextBytes(chunk, this.#at(row, text), this.#end(row, text))
    return size
  }

  isEmpty(row: number, text: number): boolean {
    return this.#at(row, text) === this.#end(row, text)
  }

  /** Writes a text as JSON. */
  write(json: JsonWriter, row: number, text: number): void {
    json.text(this.#chunks[row] as Buffer, this.#at(row, text), this.#end(row, text))
  }

  #at(row: number, text: number): number {
    return this.#bounds[2 * (row * SHOWN_TEXTS + text)] ?? 0
  }

  #end(row: number, text: number): number {
    return this.#bounds[2 * (row * SHOWN_TEXTS + text) + 1] ?? 0
  }
}
