import { MIB } from '../../schemas/units.ts'
import { JsonTokenizer } from '../../shared/json/json-tokenizer.ts'
import { MapStart } from '../../shared/json/map-start.ts'

/**
 * Memory that parsing a source map may take. The largest maps of builds (64 MiB, with their sources) take 200 to 500 MiB.
 */
export const SOURCE_MAP_COST_LIMIT_BYTES = 512 * MIB
/**
 * Memory of one parsed value. Measured, with its entry in an array: `{}` 64 bytes, `[]` 40, `[[]]` 48 for each, and 120 in
 * objects of different keys, such as `{"k1":{}},{"k2":{}}`.
 */
const VALUE_BYTES = 128
/** Memory for each byte of the text: the text itself, and the strings that are cut out of it. */
const TEXT_FACTOR = 2
/** No tool nests a source map as deeply as this. */
const MAX_DEPTH = 1_000

/** Estimates the memory that parsing a source map takes, from the size of its text and the number of its JSON values. */
export function sourceMapCost(bytes: number, values: number): number {
  return TEXT_FACTOR * bytes + VALUE_BYTES * values
}

/**
 * Reads a source map in chunks and estimates what `JSON.parse` of it would cost, before anything is built: 64 MiB of
 * `{},{},…` take 1.4 GB. It passes over the inside of strings without validating it.
 */
export class SourceMapScanner {
  readonly #tokenizer = new JsonTokenizer({ maxDepth: MAX_DEPTH, reportDepth: -1, checks: 'structure' })
  readonly #start = new MapStart()
  #bytes = 0
  #isJson = true

  /** Reads the next bytes. */
  add(bytes: Uint8Array): void {
    this.#bytes += bytes.length
    if (!this.#isJson) return
    const start = this.#start.skip(bytes)
    this.#isJson = start >= 0 && this.#tokenizer.add(start === 0 ? bytes : bytes.subarray(start))
  }

  /** Whether the bytes so far can be the beginning of JSON whose strings are valid. */
  get isJson(): boolean {
    return this.#isJson
  }

  /** The memory that parsing the bytes so far would take. Parsing ends at the first byte that is not JSON. */
  get costBytes(): number {
    return sourceMapCost(this.#bytes, this.#tokenizer.values)
  }
}
