import {
  COLON,
  COMMA_OR_END,
  ESCAPE,
  FAILED,
  HEX,
  INTEGER,
  isBlank,
  isDigit,
  isHexDigit,
  KEY,
  KEY_OR_END,
  LINE,
  LINE_END,
  LITERAL,
  MINUS,
  nextOfNumber,
  STRING,
  type State,
  UTF8,
  VALUE,
  VALUE_OR_END,
  ZERO,
} from './json-states.ts'

/**
 * Checks JSON lines as their bytes come, and reads what each event tells of itself. Nothing is built of what is read, so
 * that a line of any length and shape costs no memory: `JSON.parse` of 100 MiB of `{},{},…` would cost 2 GB.
 *
 *   lines := line ("\n" line)*        line := blanks (object blanks)?
 */
export class JsonLinesScanner {
  /** Objects read to their end. */
  events = 0
  /** Of their member `timestamp`, where it is a number that can be a time (ms). */
  firstMs = Number.POSITIVE_INFINITY
  lastMs = Number.NEGATIVE_INFINITY
  hasFullSnapshot = false
  #line = 1
  #state: State = LINE
  #depth = 0
  /** One byte for each open `{` (1) or `[` (0). */
  readonly #nesting = new Uint8Array(MAX_DEPTH)
  #inKey = false
  /** Of the event's own members: the last key, and a number while it is read. Cut where they are too long to matter. */
  readonly #token = Buffer.alloc(TOKEN_BYTES)
  #tokenLength = 0
  #key: EventKey | undefined
  #timestamp: number | undefined
  #type: number | undefined
  /** Of `\u` or a literal: what is still to come. Of a character in UTF-8: its bytes, and the bounds of the next one. */
  #rest = 0
  #literal = ''
  #low = 0x80
  #high = 0xbf

  /** False: these are no JSON lines; `fault` says where. Nothing can be added after that. */
  add(bytes: Uint8Array): boolean {
    const { length } = bytes
    let state = this.#state
    let at = 0
    while (at < length && state !== FAILED) {
      // Most of a recording is text (markup, style sheets, names) and digits: those are passed over without a step each.
      if (state === STRING) {
        const start = at
        while (at < length && PLAIN[bytes[at] as number] === 1) at++
        if (this.#inKey && this.#depth === 1) this.#keepAll(bytes, start, at)
      } else if (state === INTEGER && this.#depth > 1) {
        while (at < length && isDigit(bytes[at] as number)) at++
      }
      if (at < length) state = this.#step(state, bytes[at++] as number)
    }
    this.#state = state
    return state !== FAILED
  }

  /** False: the last line is cut short. */
  end(): boolean {
    if (this.#state === LINE || this.#state === LINE_END) return true
    this.#state = FAILED
    return false
  }

  get fault(): string {
    return `line ${this.#line} is not a JSON object`
  }

  #step(state: State, byte: number): State {
    switch (state) {
      case LINE:
        if (byte === 0x7b) return this.#open(1)
        return this.#between(byte, LINE)
      case LINE_END:
        return this.#between(byte, LINE_END)
      case VALUE:
        return this.#value(byte)
      case VALUE_OR_END:
        return byte === 0x5d ? this.#close(0) : this.#value(byte)
      case KEY_OR_END:
        if (byte === 0x7d) return this.#close(1)
        return this.#beginKey(byte, KEY_OR_END)
      case KEY:
        return this.#beginKey(byte, KEY)
      case COLON:
        return byte === 0x3a ? VALUE : isBlank(byte) ? COLON : FAILED
      case COMMA_OR_END:
        return this.#afterValue(byte)
      case STRING:
        return this.#text(byte)
      case ESCAPE:
        return this.#escape(byte)
      case HEX:
        if (!isHexDigit(byte)) return FAILED
        return --this.#rest === 0 ? STRING : HEX
      case UTF8:
        if (byte < this.#low || byte > this.#high) return FAILED
        this.#low = 0x80
        this.#high = 0xbf
        return --this.#rest === 0 ? STRING : UTF8
      case LITERAL:
        if (byte !== this.#literal.charCodeAt(this.#rest)) return FAILED
        return ++this.#rest === this.#literal.length ? COMMA_OR_END : LITERAL
      default:
        return this.#number(state, byte)
    }
  }

  #between(byte: number, state: State): State {
    if (byte === 0x0a) {
      this.#line++
      return LINE
    }
    return byte === 0x20 || byte === 0x09 || byte === 0x0d ? state : FAILED
  }

  #open(isObject: 0 | 1): State {
    if (this.#depth === MAX_DEPTH) return FAILED
    this.#nesting[this.#depth++] = isObject
    return isObject === 1 ? KEY_OR_END : VALUE_OR_END
  }

  #close(isObject: 0 | 1): State {
    if (this.#nesting[this.#depth - 1] !== isObject) return FAILED
    this.#depth--
    if (this.#depth > 0) return COMMA_OR_END
    this.#endEvent()
    return LINE_END
  }

  #endEvent(): void {
    this.events++
    if (this.#timestamp !== undefined && Math.abs(this.#timestamp) <= MAX_TIME_MS) {
      this.firstMs = Math.min(this.firstMs, this.#timestamp)
      this.lastMs = Math.max(this.lastMs, this.#timestamp)
    }
    if (this.#type === FULL_SNAPSHOT) this.hasFullSnapshot = true
    this.#timestamp = undefined
    this.#type = undefined
  }

  #beginKey(byte: number, state: State): State {
    if (byte !== 0x22) return isBlank(byte) ? state : FAILED
    // Keys of what is nested in an event are nobody's.
    this.#inKey = true
    this.#tokenLength = 0
    return STRING
  }

  #value(byte: number): State {
    if (this.#depth === 1) this.#forget()
    switch (byte) {
      case 0x20:
      case 0x09:
      case 0x0d:
        return VALUE
      case 0x22:
        this.#inKey = false
        return STRING
      case 0x7b:
        return this.#open(1)
      case 0x5b:
        return this.#open(0)
      case 0x74:
        return this.#beginLiteral('true')
      case 0x66:
        return this.#beginLiteral('false')
      case 0x6e:
        return this.#beginLiteral('null')
    }
    this.#tokenLength = 0
    this.#keep(byte)
    if (byte === 0x2d) return MINUS
    if (byte === 0x30) return ZERO
    return isDigit(byte) ? INTEGER : FAILED
  }

  /** Of members of one name the last counts, as for JSON.parse. */
  #forget(): void {
    if (this.#key === 'timestamp') this.#timestamp = undefined
    else if (this.#key === 'type') this.#type = undefined
  }

  #beginLiteral(literal: string): State {
    this.#literal = literal
    this.#rest = 1
    return LITERAL
  }

  #afterValue(byte: number): State {
    switch (byte) {
      case 0x2c:
        return this.#nesting[this.#depth - 1] === 1 ? KEY : VALUE
      case 0x7d:
        return this.#close(1)
      case 0x5d:
        return this.#close(0)
      default:
        return isBlank(byte) ? COMMA_OR_END : FAILED
    }
  }

  /** What ends or interrupts the plain characters of a string. */
  #text(byte: number): State {
    if (byte === 0x22) {
      if (!this.#inKey) return COMMA_OR_END
      this.#inKey = false
      if (this.#depth === 1) this.#key = this.#readKey()
      return COLON
    }
    // A key that is written with escapes is none of those looked for: nobody writes them so.
    if (this.#inKey) this.#tokenLength = TOKEN_BYTES
    if (byte === 0x5c) return ESCAPE
    return this.#beginCharacter(byte)
  }

  /** The first byte of a character beyond ASCII; the bounds of the second refuse overlong forms, surrogates and what is no character. */
  #beginCharacter(byte: number): State {
    if (byte < 0xc2 || byte > 0xf4) return FAILED
    this.#rest = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
    if (byte === 0xe0) this.#low = 0xa0
    else if (byte === 0xed) this.#high = 0x9f
    else if (byte === 0xf0) this.#low = 0x90
    else if (byte === 0xf4) this.#high = 0x8f
    return UTF8
  }

  #escape(byte: number): State {
    if (byte === 0x75) {
      this.#rest = 4
      return HEX
    }
    return ESCAPABLE.includes(byte) ? STRING : FAILED
  }

  #number(state: State, byte: number): State {
    const next = nextOfNumber(state, byte)
    if (next !== COMMA_OR_END) {
      this.#keep(byte)
      return next
    }
    if (this.#depth === 1) this.#readNumber()
    return this.#afterValue(byte)
  }

  #keep(byte: number): void {
    if (this.#tokenLength < TOKEN_BYTES) this.#token[this.#tokenLength++] = byte
  }

  #keepAll(bytes: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end && this.#tokenLength < TOKEN_BYTES; at++) this.#keep(bytes[at] as number)
  }

  #readKey(): EventKey | undefined {
    if (this.#tokenLength === 4 && this.#token.toString('latin1', 0, 4) === 'type') return 'type'
    return this.#tokenLength === 9 && this.#token.toString('latin1', 0, 9) === 'timestamp' ? 'timestamp' : undefined
  }

  #readNumber(): void {
    if (this.#key === undefined || this.#tokenLength === TOKEN_BYTES) return
    const value = Number(this.#token.toString('latin1', 0, this.#tokenLength))
    if (this.#key === 'timestamp') this.#timestamp = value
    else this.#type = value
  }
}

type EventKey = 'timestamp' | 'type'

/** `EventType.FullSnapshot` of rrweb. */
const FULL_SNAPSHOT = 2
/** What a Date can hold. */
const MAX_TIME_MS = 8.64e15
/** A node of a page is an object in an array; browsers stop nesting the pages that they parse at 512. */
const MAX_DEPTH = 10_000
/** Longer than any number of a time and than the keys looked for. */
const TOKEN_BYTES = 32

/** ASCII that a string may hold as it is: all but controls, quote and backslash. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== 0x22 && byte !== 0x5c ? 1 : 0,
)
const ESCAPABLE = Buffer.from('"\\/bfnrt')
