import {
  AFTER_ELEMENT,
  AFTER_MEMBER,
  BEGIN_KEY,
  BEGIN_LITERAL,
  BEGIN_NUMBER,
  BEGIN_STRING,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  DOCUMENT_TABLE,
  END,
  END_KEY,
  END_LITERAL,
  END_NUMBER,
  END_STRING,
  FAILED,
  FIRST_ACTION,
  FIRST_ELEMENT,
  FIRST_KEY,
  KEY,
  LAST_IN_STRING,
  LINE,
  LINES_TABLE,
  mayEnd,
  NEXT_LINE,
  OPEN_ARRAY,
  OPEN_OBJECT,
  PLAIN,
  RESUME_KEY,
  RESUME_STRING,
  SCALAR_STATES,
  STRING,
  type State,
  VALUE,
} from './json-table.ts'

/** Kind of a JSON value; `literal` is true, false or null. */
export type ValueKind = 'string' | 'object' | 'array' | 'literal' | 'number'

/** Options of {@link JsonTokenizer}. */
export interface TokenizerOptions {
  /** A deeper object or array fails. */
  readonly maxDepth: number
  /** Values in at most this many objects and arrays are reported to `onValueStart` and `onValueEnd`. */
  readonly reportDepth: number
  /** The keys to recognize in objects of a reported depth. */
  readonly names?: readonly string[]
  /** `lines` reads one object a line; `rest of array` begins after an element of an array. Default: one document. */
  readonly text?: 'document' | 'lines' | 'rest of array'
  /** Position of the first byte in the whole text. Default: 0. */
  readonly offset?: number
  /**
   * `all`, the default: everything. `structure`: everything except the inside of string values, which are passed ten times
   * as fast where they are long. `nothing`: the text is known to be valid and is added in one chunk, so that objects and
   * arrays below the reported depth are passed without counting their values.
   */
  readonly checks?: 'all' | 'structure' | 'nothing'
}

/**
 * Validates JSON (RFC 8259, in UTF-8) in chunks of any size and reports the values near the root with their positions.
 * It builds no objects, so text of any length and shape costs almost no memory.
 *
 * A subclass overrides the hooks. They run only for values at most `reportDepth` deep, which keeps them off the hot path.
 */
export class JsonTokenizer {
  /** Number of values of any kind and depth so far. */
  values = 0
  /** Number of open objects and arrays. */
  protected depth = 0
  /** Greatest `depth` so far, or since a subclass last set this field. */
  deepest = 0
  protected reportDepth: number
  /** Index in `names` of the last reported key, or -1 if it is any other key. */
  protected name = -1

  readonly #maxDepth: number
  readonly #table: Uint8Array
  readonly #checksStrings: boolean
  readonly #isTrusted: boolean
  readonly #names: readonly string[]
  /** The names with their quotes. */
  readonly #quotedNames: readonly Buffer[]
  #state: State
  /** The state after a value, for each depth. */
  #after = new Uint8Array(INITIAL_DEPTH)
  /** The position where the reported value began, for each depth. */
  readonly #starts: number[] = []

  #chunk: Uint8Array = EMPTY
  /** Number of bytes of the text before `#chunk`. */
  #before: number
  /** The reported key or number: the bytes in `#carry`, followed by those of `#chunk` from `#tokenFrom` to `#tokenTo`. */
  #tokenFrom = 0
  #tokenTo = 0
  #tokenIsOpen = false
  #keyIsPlain = true
  /** Created for the first token that a border between chunks cuts. */
  #carry: Uint8Array = EMPTY
  #carried = 0

  constructor(options: TokenizerOptions) {
    const { maxDepth, reportDepth, names = [], text = 'document', offset = 0, checks = 'all' } = options
    this.#maxDepth = maxDepth
    this.#checksStrings = checks === 'all'
    this.#isTrusted = checks === 'nothing'
    this.reportDepth = reportDepth
    this.#names = names
    this.#quotedNames = names.map(name => Buffer.from(`"${name}"`))
    this.#table = text === 'lines' ? LINES_TABLE : DOCUMENT_TABLE
    this.#before = offset
    this.#after[0] = END
    this.#state = text === 'lines' ? LINE : VALUE
    if (text === 'rest of array') this.#state = this.#after[++this.depth] = AFTER_ELEMENT
  }

  /** Reports a value that begins at `start`, inside `depth` objects and arrays. */
  protected onValueStart(_kind: ValueKind, _start: number): void {}

  /** Reports a value that has ended; `end` is the position after its last byte. `numberText` and `numberValue` read this value. */
  protected onValueEnd(_kind: ValueKind, _start: number, _end: number): void {}

  /** Reports a line feed between objects of JSON lines, at this position. */
  protected onLine(_position: number): void {}

  /** Reads the next bytes. Returns false if the text is invalid, as every later call then does. */
  add(bytes: Uint8Array): boolean {
    if (this.#state === FAILED) return false
    const table = this.#table
    const { length } = bytes
    let state = this.#state
    this.#chunk = bytes
    this.#tokenFrom = 0
    let at = state === STRING || state === KEY ? this.#skipText(state, bytes, 0) : 0
    while (at < length) {
      const next = table[(state << 8) | (bytes[at] as number)] as number
      if (next < FIRST_ACTION) {
        state = next
        at++
        continue
      }
      // Keys and ends of strings that are not reported do not need a call. This takes a fifth off the time.
      const isReported = this.depth <= this.reportDepth
      if (next === BEGIN_KEY && !isReported) state = KEY
      else if (next === END_KEY && !isReported) state = COLON
      else if (next === END_STRING && !isReported) state = this.#after[this.depth] as State
      else state = this.#act(next, bytes, at)
      if (next <= LAST_IN_STRING) at = this.#skipText(state, bytes, at + 1)
      else if (next !== END_NUMBER) at++
      if (this.#isTrusted && (state === FIRST_KEY || state === FIRST_ELEMENT) && this.depth > this.reportDepth) {
        at = this.#skipNested(bytes, at)
        state = this.#after[this.depth] as State
      }
      if (state === FAILED) break
    }
    this.#state = state
    if (this.#tokenIsOpen) this.#carryToken(bytes)
    this.#before += length
    return state !== FAILED
  }

  /** Begins another document. */
  protected restart(): void {
    this.#state = VALUE
    this.depth = 0
    this.#before = 0
    this.#tokenIsOpen = false
  }

  /** Whether the text may end here. A line of JSON lines may be empty. */
  end(): boolean {
    if (mayEnd(this.#state) && this.depth === 0) {
      if (this.#state !== END && this.#state !== LINE) this.#endValue('number', 0)
      return true
    }
    this.#state = FAILED
    return false
  }

  #skipText(state: State, bytes: Uint8Array, start: number): number {
    return this.#checksStrings || state === KEY ? skipPlain(bytes, start) : skipToQuote(bytes, start)
  }

  /** Returns the position of the closing bracket of the object or array that was opened before `start`. */
  #skipNested(bytes: Uint8Array, start: number): number {
    let { depth } = this
    let at = start
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === QUOTE) at = skipToQuote(bytes, at + 1)
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (++depth > this.deepest) this.deepest = depth
      } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && depth-- === this.depth) break
    }
    return at
  }

  /** Performs an action of the table and returns the next state. */
  #act(action: number, bytes: Uint8Array, at: number): State {
    switch (action) {
      case BEGIN_STRING:
        this.#beginValue('string', at)
        return STRING
      case END_STRING:
        return this.#endValue('string', at + 1)
      case BEGIN_KEY:
        if (this.depth <= this.reportDepth) this.#beginToken(at)
        this.#keyIsPlain = true
        return KEY
      case END_KEY:
        if (this.depth <= this.reportDepth) this.#endKey(at + 1)
        return COLON
      case RESUME_STRING:
        return STRING
      case RESUME_KEY:
        this.#keyIsPlain = false
        return KEY
      case OPEN_OBJECT:
        this.#beginValue('object', at)
        return this.#open(FIRST_KEY, AFTER_MEMBER)
      case OPEN_ARRAY:
        this.#beginValue('array', at)
        return this.#open(FIRST_ELEMENT, AFTER_ELEMENT)
      case CLOSE_OBJECT:
        this.depth--
        return this.#endValue('object', at + 1)
      case CLOSE_ARRAY:
        this.depth--
        return this.#endValue('array', at + 1)
      case BEGIN_NUMBER:
        this.#beginValue('number', at)
        if (this.depth <= this.reportDepth) this.#beginToken(at)
        return SCALAR_STATES[bytes[at] as number] as State
      case END_NUMBER:
        return this.#endValue('number', at)
      case BEGIN_LITERAL:
        this.#beginValue('literal', at)
        return SCALAR_STATES[bytes[at] as number] as State
      case END_LITERAL:
        return this.#endValue('literal', at + 1)
      case NEXT_LINE:
        this.onLine(this.#before + at)
        return LINE
      default:
        return FAILED
    }
  }

  #beginValue(kind: ValueKind, at: number): void {
    this.values++
    if (this.depth > this.reportDepth) return
    const start = this.#before + at
    this.#starts[this.depth] = start
    this.onValueStart(kind, start)
  }

  #endValue(kind: ValueKind, end: number): State {
    if (this.depth <= this.reportDepth) {
      if (kind === 'number') this.#endToken(end)
      this.onValueEnd(kind, this.#starts[this.depth] as number, this.#before + end)
    }
    return this.#after[this.depth] as State
  }

  #open(first: State, after: State): State {
    if (this.depth === this.#maxDepth) return FAILED
    if (++this.depth === this.#after.length) this.#after = grow(this.#after)
    this.#after[this.depth] = after
    if (this.depth > this.deepest) this.deepest = this.depth
    return first
  }

  #beginToken(at: number): void {
    this.#tokenIsOpen = true
    this.#tokenFrom = at
    this.#carried = 0
  }

  #endToken(end: number): void {
    this.#tokenIsOpen = false
    this.#tokenTo = end
  }

  #endKey(end: number): void {
    this.#endToken(end)
    if (this.#names.length > 0) this.name = this.#keyIsPlain ? this.#plainName() : this.#escapedName()
  }

  #plainName(): number {
    const length = this.#tokenLength
    for (let index = 0; index < this.#quotedNames.length; index++) {
      const name = this.#quotedNames[index] as Buffer
      if (name.length === length && this.#tokenEquals(name)) return index
    }
    return -1
  }

  #escapedName(): number {
    const text = this.#tokenText()
    return text === undefined ? -1 : this.#names.indexOf(JSON.parse(text))
  }

  get #tokenLength(): number {
    return this.#carried + this.#tokenTo - this.#tokenFrom
  }

  #tokenEquals(expected: Uint8Array): boolean {
    for (let i = 0; i < expected.length; i++) if (this.#tokenByte(i) !== expected[i]) return false
    return true
  }

  #tokenByte(i: number): number {
    return (i < this.#carried ? this.#carry[i] : this.#chunk[this.#tokenFrom + i - this.#carried]) as number
  }

  /** The text of the key with its quotes, or of the number; undefined if it is too long. */
  #tokenText(): string | undefined {
    const length = this.#tokenLength
    if (length >= TOKEN_BYTES) return undefined
    const bytes = Buffer.allocUnsafe(length)
    for (let i = 0; i < length; i++) bytes[i] = this.#tokenByte(i)
    return bytes.toString()
  }

  /** The text of the number that `onValueEnd` reports; undefined if it has 64 characters or more. */
  protected numberText(): string | undefined {
    return this.#tokenText()
  }

  /** The value of the number that `onValueEnd` reports; undefined if it has 64 characters or more. */
  protected numberValue(): number | undefined {
    const length = this.#tokenLength
    if (length > MAX_EXACT_DIGITS) return toNumber(this.#tokenText())
    let value = 0
    for (let i = 0; i < length; i++) {
      const byte = this.#tokenByte(i)
      if (byte < ZERO_BYTE || byte > NINE_BYTE) return toNumber(this.#tokenText())
      value = value * 10 + byte - ZERO_BYTE
    }
    return value
  }

  #carryToken(bytes: Uint8Array): void {
    if (this.#carry.length === 0) this.#carry = new Uint8Array(TOKEN_BYTES)
    const part = bytes.subarray(this.#tokenFrom, this.#tokenFrom + TOKEN_BYTES - this.#carried)
    this.#carry.set(part, this.#carried)
    this.#carried += part.length
    this.#tokenFrom = 0
  }
}

/** Longer than the keys and numbers that callers look for. */
const TOKEN_BYTES = 64
/** Integers of at most 15 digits are exact in a double. */
const MAX_EXACT_DIGITS = 15
const ZERO_BYTE = 0x30
const NINE_BYTE = 0x39
const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const INITIAL_DEPTH = 32
/** A shorter string is passed faster by a loop than by a call of `indexOf`. */
const NEAR_BYTES = 48
const EMPTY = new Uint8Array()

/** The position of the next byte from `start` that is not plain text of a string. */
function skipPlain(bytes: Uint8Array, start: number): number {
  const { length } = bytes
  let at = start
  while (at < length && PLAIN[bytes[at] as number] === 1) at++
  return at
}

/**
 * The position of the closing quote. If the chunk ends before it, the end of the chunk, or its last byte where that is a
 * backslash that escapes the first byte of the next chunk.
 */
function skipToQuote(bytes: Uint8Array, start: number): number {
  const near = Math.min(start + NEAR_BYTES, bytes.length)
  let at = start
  while (at < near && PLAIN[bytes[at] as number] === 1) at++
  return at < near && bytes[at] === QUOTE ? at : findQuote(bytes, start, at)
}

/** `from` is the position where to begin; `start` is that of the text, where counting backslashes ends. */
function findQuote(bytes: Uint8Array, start: number, from: number): number {
  for (let next = from; ; ) {
    const quote = bytes.indexOf(QUOTE, next)
    const end = quote === -1 ? bytes.length : quote
    let backslashes = 0
    while (end - backslashes > start && bytes[end - backslashes - 1] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
    if (quote === -1) return end - 1
    next = quote + 1
  }
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function grow(states: Uint8Array): Uint8Array<ArrayBuffer> {
  const grown = new Uint8Array(states.length * 2)
  grown.set(states)
  return grown
}
