import {
  COLON,
  COMMA_OR_END,
  ESCAPE,
  FAILED,
  HEX,
  INTEGER,
  isDigit,
  isHexDigit,
  KEY,
  KEY_OR_END,
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

export type ValueKind = 'string' | 'object' | 'array' | 'literal' | 'number'

/**
 * Reads JSON (RFC 8259) as its bytes come, and builds nothing of it: text of any length and shape costs no memory. What
 * is made of it is told by those who extend it, from keys and numbers of the outermost object and the kinds of values.
 */
export abstract class JsonMachine {
  protected state: State
  protected depth = 0
  /** One byte for each open `{` (1) or `[` (0). */
  protected readonly nesting: Uint8Array
  /** Of the outermost object: the key that is read, or a number; cut where it is too long to matter. */
  protected readonly token = Buffer.alloc(TOKEN_BYTES)
  protected tokenLength = 0
  readonly #lineBreakIsBlank: boolean
  #isKey = false
  /** Of `\u` or a literal: what is still to come. Of a character in UTF-8: its bytes, and the bounds of the next one. */
  #rest = 0
  #literal = ''
  #low = 0x80
  #high = 0xbf

  constructor(options: { state: State; maxDepth: number; lineBreakIsBlank: boolean }) {
    this.state = options.state
    this.nesting = new Uint8Array(options.maxDepth)
    this.#lineBreakIsBlank = options.lineBreakIsBlank
  }

  /** A value begins, at the depth of what it is in. */
  protected abstract onValue(kind: ValueKind): void
  /** A key of the outermost object is in `token`. */
  protected abstract onKey(): void
  /** A number has ended; of the outermost object, it is in `token`. */
  protected abstract onNumber(): void
  /** An object or array has been closed; answers what comes then. */
  protected abstract onClose(): State
  /** A byte where no value is open, in a state that only the extending class knows. */
  protected abstract onOutside(state: State, byte: number): State

  /** False: this is not what was to come. Nothing can be added after that. */
  add(bytes: Uint8Array): boolean {
    const { length } = bytes
    let { state } = this
    let at = 0
    while (at < length && state !== FAILED) {
      // Most of it is text and digits: those are passed over without a step each.
      if (state === STRING) {
        const start = at
        while (at < length && PLAIN[bytes[at] as number] === 1) at++
        if (this.#isKey && this.depth === 1) this.#keepAll(bytes, start, at)
      } else if (state === INTEGER && this.depth > 1) {
        while (at < length && isDigit(bytes[at] as number)) at++
      }
      if (at < length) state = this.#step(state, bytes[at++] as number)
    }
    this.state = state
    return state !== FAILED
  }

  #step(state: State, byte: number): State {
    switch (state) {
      case VALUE:
        return this.#value(byte, VALUE)
      case VALUE_OR_END:
        return byte === 0x5d ? this.#close(0) : this.#value(byte, VALUE_OR_END)
      case KEY_OR_END:
        return byte === 0x7d ? this.#close(1) : this.#beginKey(byte, KEY_OR_END)
      case KEY:
        return this.#beginKey(byte, KEY)
      case COLON:
        return byte === 0x3a ? VALUE : this.#isBlank(byte) ? COLON : FAILED
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
        return state < VALUE ? this.onOutside(state, byte) : this.#number(state, byte)
    }
  }

  #value(byte: number, blankState: State): State {
    if (this.#isBlank(byte)) return blankState
    switch (byte) {
      case 0x22:
        this.onValue('string')
        this.#isKey = false
        return STRING
      case 0x7b:
        this.onValue('object')
        return this.open(1)
      case 0x5b:
        this.onValue('array')
        return this.open(0)
      case 0x74:
        return this.#beginLiteral('true')
      case 0x66:
        return this.#beginLiteral('false')
      case 0x6e:
        return this.#beginLiteral('null')
    }
    this.onValue('number')
    this.tokenLength = 0
    this.#keep(byte)
    if (byte === 0x2d) return MINUS
    if (byte === 0x30) return ZERO
    return isDigit(byte) ? INTEGER : FAILED
  }

  protected open(isObject: 0 | 1): State {
    if (this.depth === this.nesting.length) return FAILED
    this.nesting[this.depth++] = isObject
    return isObject === 1 ? KEY_OR_END : VALUE_OR_END
  }

  #close(isObject: 0 | 1): State {
    if (this.depth === 0 || this.nesting[this.depth - 1] !== isObject) return FAILED
    this.depth--
    return this.onClose()
  }

  #beginKey(byte: number, blankState: State): State {
    if (byte !== 0x22) return this.#isBlank(byte) ? blankState : FAILED
    this.#isKey = true
    this.tokenLength = 0
    return STRING
  }

  #beginLiteral(literal: string): State {
    this.onValue('literal')
    this.#literal = literal
    this.#rest = 1
    return LITERAL
  }

  #afterValue(byte: number): State {
    if (byte === 0x2c) return this.depth === 0 ? FAILED : this.nesting[this.depth - 1] === 1 ? KEY : VALUE
    if (byte === 0x7d) return this.#close(1)
    if (byte === 0x5d) return this.#close(0)
    return this.#isBlank(byte) ? COMMA_OR_END : FAILED
  }

  /** What ends or interrupts the plain characters of a string. */
  #text(byte: number): State {
    if (byte === 0x22) {
      if (!this.#isKey) return COMMA_OR_END
      this.#isKey = false
      if (this.depth === 1) this.onKey()
      return COLON
    }
    // A key that is written with escapes is none of those looked for: nobody writes them so.
    if (this.#isKey) this.tokenLength = TOKEN_BYTES
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
    this.onNumber()
    return this.#afterValue(byte)
  }

  /** The text of the token; undefined when it was cut. */
  protected tokenText(): string | undefined {
    return this.tokenLength < TOKEN_BYTES ? this.token.toString('latin1', 0, this.tokenLength) : undefined
  }

  #keep(byte: number): void {
    if (this.tokenLength < TOKEN_BYTES) this.token[this.tokenLength++] = byte
  }

  #keepAll(bytes: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end && this.tokenLength < TOKEN_BYTES; at++) this.#keep(bytes[at] as number)
  }

  #isBlank(byte: number): boolean {
    return byte === 0x20 || byte === 0x09 || byte === 0x0d || (byte === 0x0a && this.#lineBreakIsBlank)
  }
}

/** Longer than the keys and numbers that are looked for. */
const TOKEN_BYTES = 32

/** ASCII that a string may hold as it is: all but controls, quote and backslash. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== 0x22 && byte !== 0x5c ? 1 : 0,
)
const ESCAPABLE = Buffer.from('"\\/bfnrt')
