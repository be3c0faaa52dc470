import { JsonTokenizer, type ValueKind } from '../../shared/json/json-tokenizer.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'

/** Options of `ElementCutter`. */
interface CutterOptions {
  /** Numbers of elements and of bytes after which no further element is taken. At least one element is taken. */
  readonly limit: number
  readonly limitBytes: number
  /** A longer element throws a PermanentError. */
  readonly elementLimitBytes: number
  /** Position right after an element, where the text begins if it is not the whole text. */
  readonly offset?: number | undefined
}

/**
 * Cuts the elements of the first array out of a JSON text that arrives in pieces, without parsing or storing the rest.
 * A page of 10,000 of 100,000 files (37 MB) takes 30 ms, at most 9 ms of it without a pause, including its use.
 */
export class ElementCutter extends JsonTokenizer {
  /** Position after the last element taken, from the beginning of the whole text. */
  endOffset: number
  /** Whether the array ended after the last element taken. */
  isLast = false
  #taken = 0
  #takenBytes = 0
  #isDone = false
  readonly #options: CutterOptions
  /** Depth of the elements; undefined before the array. */
  #elementDepth: number | undefined
  /** Position of the current piece in the whole text. */
  #pieceStart: number
  #piece: Buffer = EMPTY
  #elements: Buffer[] = []
  /** Position where the open element begins in the current piece; 0 if it began in an earlier piece; -1 for none. */
  #elementStart = -1
  /** The part of the open element that earlier pieces contained. */
  #partial: Buffer[] = []
  #partialBytes = 0

  constructor(options: CutterOptions) {
    const { offset } = options
    const text = offset === undefined ? 'document' : 'rest of array'
    super({ text, offset: offset ?? 0, maxDepth: MAX_DEPTH, reportDepth: 1, checks: 'structure' })
    this.#options = options
    this.#pieceStart = this.endOffset = offset ?? 0
    if (offset !== undefined) this.#elementDepth = 1
  }

  /** Whether all elements of the page are cut and it is known whether the page is the last. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** Returns the elements that end in this piece: views into the piece, except for one that began before. */
  push(piece: Buffer): Buffer[] {
    this.#piece = piece
    this.#elements = []
    if (!this.add(piece) && !this.#isDone) throw new PermanentError('the text is not valid JSON')
    if (this.#elementStart >= 0 && !this.#isDone) {
      this.#keep(piece.subarray(this.#elementStart))
      this.#elementStart = 0
    }
    this.#pieceStart += piece.length
    return this.#elements
  }

  protected override onValueStart(kind: ValueKind, start: number): void {
    if (this.#elementDepth === undefined) {
      if (kind === 'array') this.#elementDepth = this.reportDepth = this.depth + 1
    } else if (this.depth === this.#elementDepth && !this.#isDone) {
      const { limit, limitBytes } = this.#options
      this.#isDone = this.#taken === limit || this.#takenBytes >= limitBytes
      if (!this.#isDone) this.#elementStart = start - this.#pieceStart
    }
  }

  protected override onValueEnd(_kind: ValueKind, _start: number, end: number): void {
    if (this.#elementDepth === undefined || this.#isDone) return
    if (this.depth === this.#elementDepth) this.#take(end)
    else if (this.depth < this.#elementDepth) this.#isDone = this.isLast = true
  }

  #take(end: number): void {
    this.#keep(this.#piece.subarray(this.#elementStart, end - this.#pieceStart))
    const [first] = this.#partial
    const element = first && this.#partial.length === 1 ? first : Buffer.concat(this.#partial)
    this.#elementStart = -1
    this.#partial = []
    this.#partialBytes = 0
    this.#taken++
    this.#takenBytes += element.length
    this.endOffset = end
    this.#elements.push(element)
  }

  #keep(bytes: Buffer): void {
    this.#partialBytes += bytes.length
    if (this.#partialBytes > this.#options.elementLimitBytes) {
      throw new PermanentError(`an element of the array has more than ${this.#options.elementLimitBytes} bytes`)
    }
    this.#partial.push(bytes)
  }
}

/** A manifest is an object with an array of flat objects. */
const MAX_DEPTH = 1_000
const EMPTY = Buffer.alloc(0)
