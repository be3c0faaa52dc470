import type { ColumnsRow } from '../../clickhouse/queries/traces/select-trace-columns.ts'
import { type JsonWriter, jsonTextBytes } from './json-writer.ts'
import { doubled } from './trace-skeleton.ts'

/** Number of texts of a row that a response shows. The ids of findings follow. */
const SHOWN_TEXTS = 5
/** The texts of a row. */
export const TEXT = { name: 0, serviceName: 1, statusMessage: 2, sessionId: 3, httpRoute: 4 } as const

const FIRST_CAPACITY = 1_024
const NOTHING = Buffer.alloc(0)

/**
 * The shown texts of rows, as ClickHouse sent them. They are copied into a response without becoming strings in between, of which
 * 1,000 spans left 435 KB and more to the garbage collector.
 */
export class RowTexts {
  /** The rows as they came. */
  #bytes: Buffer = NOTHING
  /** Start and end of each text. */
  #bounds = new Uint32Array(FIRST_CAPACITY)
  #size = 0
  #totalBytes = 0

  /** Bytes of the texts of all rows. */
  get totalBytes(): number {
    return this.#totalBytes
  }

  add({ bytes, starts, ends }: ColumnsRow): void {
    this.#bytes = bytes
    for (let text = 0; text < SHOWN_TEXTS; text++) {
      const start = starts[text] ?? 0
      const end = ends[text] ?? 0
      if (this.#size === this.#bounds.length) this.#bounds = new Uint32Array(doubled(this.#bounds))
      this.#bounds[this.#size++] = start
      this.#bounds[this.#size++] = end
      this.#totalBytes += end - start
    }
  }

  /** Returns the bytes that the texts of a row have in JSON. */
  jsonBytes(row: number): number {
    let size = 0
    for (let text = 0; text < SHOWN_TEXTS; text++)
      size += jsonTextBytes(this.#bytes, this.#at(row, text), this.#end(row, text))
    return size
  }

  isEmpty(row: number, text: number): boolean {
    return this.#at(row, text) === this.#end(row, text)
  }

  /** Writes a text as JSON. */
  write(json: JsonWriter, row: number, text: number): void {
    json.text(this.#bytes, this.#at(row, text), this.#end(row, text))
  }

  #at(row: number, text: number): number {
    return this.#bounds[2 * (row * SHOWN_TEXTS + text)] ?? 0
  }

  #end(row: number, text: number): number {
    return this.#bounds[2 * (row * SHOWN_TEXTS + text) + 1] ?? 0
  }
}
