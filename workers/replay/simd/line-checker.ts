import { assembleLineCheck, PADDING_BYTES, TEXT_AT } from './line-check.ts'
import { instantiate } from './wasm-module.ts'

/** Facts of the events of a text. */
interface LineFacts {
  readonly events: number
  readonly hasFullSnapshot: boolean
  /** Infinite if no event has a timestamp. */
  readonly firstMs: number
  readonly lastMs: number
}

/** Functions and values of the module that are used. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly events: { readonly value: number }
  readonly firstMs: { readonly value: number }
  readonly lastMs: { readonly value: number }
  readonly hasFullSnapshot: { readonly value: number }
  check(length: number): number
}

const LINE_FEED = 0x0a

/** Proves texts with the instructions that process 16 bytes at a time. Its memory has room for the longest text. */
export class LineChecker {
  readonly #exports = instantiate(assembleLineCheck()) as Exports
  readonly #memory = new Uint8Array(this.#exports.memory.buffer)

  /**
   * Returns the facts of a text that is proven to be JSON lines of objects, apart from its UTF-8. Returns undefined if it is
   * not, or if it has what only the exact check reads: blanks between tokens, deep nesting, numbers of 16 digits as times.
   * Throws a RangeError for a text over MAX_TEXT_BYTES.
   */
  check(text: Uint8Array): LineFacts | undefined {
    const end = TEXT_AT + text.length
    this.#memory.set(text, TEXT_AT)
    this.#memory.fill(LINE_FEED, end, end + PADDING_BYTES)
    const { check, events, firstMs, lastMs, hasFullSnapshot } = this.#exports
    if (check(text.length) === 0) return undefined
    return {
      events: events.value,
      hasFullSnapshot: hasFullSnapshot.value !== 0,
      firstMs: firstMs.value,
      lastMs: lastMs.value,
    }
  }
}
