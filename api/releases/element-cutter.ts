import { PermanentError } from '../../shared/runtime/errors.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

export interface CutterOptions {
  /** Elements, and their bytes, after which no further one is taken: at least one is. */
  readonly limit: number
  readonly limitBytes: number
  /** A longer element is a PermanentError. */
  readonly elementLimitBytes: number
  /** Where the text begins when it is not the whole: right behind an element. */
  readonly offset?: number | undefined
}

/**
 * Cuts the objects of the first array out of a JSON text that comes in pieces, without parsing or holding the rest.
 * A page of 10,000 of 100,000 files (37 MB) takes 30 ms, at most 9 of them at a stretch, with what becomes of it.
 */
export class ElementCutter {
  /** Behind the last element taken, from the beginning of the whole text. */
  end: number
  /** The array ended behind the last element taken. */
  isLast = false
  #taken = 0
  #takenBytes = 0
  #isDone = false
  readonly #options: CutterOptions
  /** Bytes of the text before the present piece. */
  #before: number
  /** Of braces and brackets within the array; undefined before it. */
  #depth: number | undefined
  #inString = false
  #isEscaped = false
  /** The beginning of an element that is not whole yet. */
  #partial: Buffer[] = []
  #partialBytes = 0

  constructor(options: CutterOptions) {
    this.#options = options
    this.#before = this.end = options.offset ?? 0
    this.#depth = options.offset === undefined ? undefined : 0
  }

  /** It is known what the page holds, and whether it is the last. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** The elements that end in this piece: views into it, but for one that began before. */
  push(piece: Buffer): Buffer[] {
    const elements: Buffer[] = []
    let start = this.#partialBytes > 0 ? 0 : -1
    for (let i = 0; i < piece.length && !this.#isDone; i++) {
      const byte = piece[i]
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) this.#inString = false
        continue
      }
      if (byte === QUOTE) this.#inString = true
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (this.#open(byte)) start = i
      } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && this.#close()) {
        elements.push(this.#take(piece, start, i + 1))
        start = -1
      }
    }
    if (start >= 0 && !this.#isDone) this.#keep(piece.subarray(start))
    this.#before += piece.length
    return elements
  }

  /** Whether an element of the page begins here. */
  #open(byte: number): boolean {
    if (this.#depth === undefined) {
      if (byte === OPEN_BRACKET) this.#depth = 0
      return false
    }
    if (this.#depth++ > 0) return false
    const { limit, limitBytes } = this.#options
    this.#isDone = this.#taken === limit || this.#takenBytes >= limitBytes
    return !this.#isDone
  }

  /** Whether an element ends here. */
  #close(): boolean {
    if (this.#depth === undefined) return false
    if (this.#depth === 0) {
      this.#isDone = this.isLast = true
      return false
    }
    return --this.#depth === 0
  }

  #take(piece: Buffer, start: number, end: number): Buffer {
    this.#keep(piece.subarray(start, end))
    const [first] = this.#partial
    const element = first && this.#partial.length === 1 ? first : Buffer.concat(this.#partial)
    this.#partial = []
    this.#partialBytes = 0
    this.#taken++
    this.#takenBytes += element.length
    this.end = this.#before + end
    return element
  }

  #keep(bytes: Buffer): void {
    this.#partialBytes += bytes.length
    if (this.#partialBytes > this.#options.elementLimitBytes) {
      throw new PermanentError(`an element of the array has more than ${this.#options.elementLimitBytes} bytes`)
    }
    this.#partial.push(bytes)
  }
}
