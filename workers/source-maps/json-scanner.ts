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
} from '../replay/json-states.ts'

/** What a member of the document is; of a number, its text. */
export type MemberKind = 'string' | 'object' | 'array' | 'literal' | { readonly number: string }

/**
 * Checks one JSON document as its bytes come, and tells what the members of its outermost object are. Nothing is built of
 * it. `JSON.parse` of 64 MiB of `[],[],…` takes 865 MB, and in a worker thread as well: with `resourceLimits` of 256 MB it
 * went on to the end, and the whole process was aborted behind it.
 */
export class JsonScanner {
  /** Values of any kind so far: what building the document would cost. */
  values = 0
  /** The members of the outermost object that were asked for. Of one name the last counts, as for JSON.parse. */
  readonly members = new Map<string, MemberKind>()
  readonly #wanted: ReadonlySet<string>
  #state: State = VALUE
  #depth = 0
  /** One byte for each open `{` (1) or `[` (0). */
  readonly #nesting = new Uint8Array(MAX_DEPTH)
  #isKey = false
  /** Of the outermost object: the key that is read, or a number; cut where it is too long to matter. */
  readonly #token = Buffer.alloc(TOKEN_BYTES)
  #tokenLength = 0
  #key = ''
  /** Of `\u` or a literal: what is still to come. Of a character in UTF-8: its bytes, and the bounds of the next one. */
  #rest = 0
  #literal = ''
  #low = 0x80
  #high = 0xbf

  constructor(wantedMembers: Iterable<string> = []) {
    this.#wanted = new Set(wantedMembers)
  }

  /** False: this is no JSON. Nothing can be added after that. */
  add(bytes: Uint8Array): boolean {
    const { length } = bytes
    let state = this.#state
    let at = 0
    while (at < length && state !== FAILED) {
      // Nearly all of a source map is text: it is passed over without a step each.
      if (state === STRING) {
        const start = at
        while (at < length && PLAIN[bytes[at] as number] === 1) at++
        if (this.#isKey && this.#depth === 1) for (let i = start; i < at; i++) this.#keep(bytes[i] as number)
      }
      if (at < length) state = this.#step(state, bytes[at++] as number)
    }
    this.#state = state
    return state !== FAILED
  }

  /** Whether the document is whole. */
  end(): boolean {
    return this.#depth === 0 && this.values > 0 && this.#afterNumber(0x20) === COMMA_OR_END
  }

  /** The state once a number that nothing else ends is ended by this byte. */
  #afterNumber(byte: number): State {
    return this.#state >= MINUS && this.#state < FAILED ? nextOfNumber(this.#state, byte) : this.#state
  }

  #step(state: State, byte: number): State {
    switch (state) {
      case VALUE:
        return this.#value(byte)
      case VALUE_OR_END:
        return byte === 0x5d ? this.#close(0) : this.#value(byte, VALUE_OR_END)
      case KEY_OR_END:
        return byte === 0x7d ? this.#close(1) : this.#beginKey(byte, KEY_OR_END)
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

  #value(byte: number, blankState: State = VALUE): State {
    if (isBlank(byte)) return blankState
    this.values++
    switch (byte) {
      case 0x22:
        this.#say('string')
        this.#isKey = false
        return STRING
      case 0x7b:
        this.#say('object')
        return this.#open(1)
      case 0x5b:
        this.#say('array')
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

  #say(kind: MemberKind): void {
    if (this.#depth === 1 && this.#nesting[0] === 1 && this.#wanted.has(this.#key)) this.members.set(this.#key, kind)
  }

  #open(isObject: 0 | 1): State {
    if (this.#depth === MAX_DEPTH) return FAILED
    this.#nesting[this.#depth++] = isObject
    return isObject === 1 ? KEY_OR_END : VALUE_OR_END
  }

  #close(isObject: 0 | 1): State {
    if (this.#depth === 0 || this.#nesting[this.#depth - 1] !== isObject) return FAILED
    this.#depth--
    return COMMA_OR_END
  }

  #beginKey(byte: number, blankState: State): State {
    if (byte !== 0x22) return isBlank(byte) ? blankState : FAILED
    this.#isKey = true
    this.#tokenLength = 0
    return STRING
  }

  #beginLiteral(literal: string): State {
    this.#say('literal')
    this.#literal = literal
    this.#rest = 1
    return LITERAL
  }

  #afterValue(byte: number): State {
    if (isBlank(byte)) return COMMA_OR_END
    if (byte === 0x7d) return this.#close(1)
    if (byte === 0x5d) return this.#close(0)
    if (byte !== 0x2c || this.#depth === 0) return FAILED
    return this.#nesting[this.#depth - 1] === 1 ? KEY : VALUE
  }

  /** What ends or interrupts the plain characters of a string. */
  #text(byte: number): State {
    if (byte === 0x22) {
      if (!this.#isKey) return COMMA_OR_END
      this.#isKey = false
      if (this.#depth === 1) this.#key = this.#token.toString('latin1', 0, this.#tokenLength)
      return COLON
    }
    // A key that is written with escapes is none of those looked for: nobody writes them so.
    if (this.#isKey) this.#tokenLength = TOKEN_BYTES
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
    this.#say({ number: this.#token.toString('latin1', 0, this.#tokenLength) })
    return this.#afterValue(byte)
  }

  #keep(byte: number): void {
    if (this.#tokenLength < TOKEN_BYTES) this.#token[this.#tokenLength++] = byte
  }
}

const isBlank = (byte: number) => byte === 0x20 || byte === 0x0a || byte === 0x09 || byte === 0x0d

/** No tool nests a map so deep. */
const MAX_DEPTH = 1_000
/** Longer than the keys looked for, and than a version. */
const TOKEN_BYTES = 32

/** ASCII that a string may hold as it is: all but controls, quote and backslash. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== 0x22 && byte !== 0x5c ? 1 : 0,
)
const ESCAPABLE = Buffer.from('"\\/bfnrt')
