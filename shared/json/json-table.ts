/**
 * The grammar of JSON (RFC 8259) as a table: state × byte → next state or action. A number below FIRST_ACTION is the next
 * state, which consumes the byte. A number from FIRST_ACTION on is an action of the tokenizer.
 */
export type State = number

/** Before a line of JSON lines; only an object may begin here. */
export const LINE = 0
/** After the outermost value. */
export const END = 1
/** Before a value. */
export const VALUE = 2
/** After `[`: a value or `]`. */
export const FIRST_ELEMENT = 3
/** After an element of an array: `,` or `]`. */
export const AFTER_ELEMENT = 4
/** After `{`: a key or `}`. */
export const FIRST_KEY = 5
/** After a comma in an object: a key. */
const NEXT_KEY = 6
/** After a key: `:`. */
export const COLON = 7
/** After a member of an object: `,` or `}`. */
export const AFTER_MEMBER = 8
const MINUS = 9
const ZERO = 10
const INTEGER = 11
const POINT = 12
const FRACTION = 13
const EXPONENT = 14
const EXPONENT_SIGN = 15
const EXPONENT_DIGITS = 16
/** `true` takes three states, `false` four and `null` three: one before each of the letters after the first. */
const TRUE = 17
const FALSE = 20
const NULL = 24
/** Inside a string value. The first of thirteen states: see `addString`. */
export const STRING = 27
/** Inside a key, with thirteen states like those of STRING. */
export const KEY = 40
/** The first number that is an action. */
export const FIRST_ACTION = 53

/** A string value begins. */
export const BEGIN_STRING = 53
/** A key begins. */
export const BEGIN_KEY = 54
/** An escape or a character beyond ASCII has ended inside a string value. */
export const RESUME_STRING = 55
/** The same inside a key. */
export const RESUME_KEY = 56
/** After an action up to this one, the text of a string or key follows. */
export const LAST_IN_STRING = RESUME_KEY
/** A string value ends. */
export const END_STRING = 57
/** A key ends. */
export const END_KEY = 58
/** An object begins. */
export const OPEN_OBJECT = 59
/** An array begins. */
export const OPEN_ARRAY = 60
/** An object ends. */
export const CLOSE_OBJECT = 61
/** An array ends. */
export const CLOSE_ARRAY = 62
/** A number begins. */
export const BEGIN_NUMBER = 63
/** The literal true, false or null begins. */
export const BEGIN_LITERAL = 64
/** A literal ends. */
export const END_LITERAL = 65
/** A line of JSON lines ends. */
export const NEXT_LINE = 66
/** A number has ended before this byte, which is not consumed. */
export const END_NUMBER = 67
/** The byte is not allowed here. */
export const FAILED = 68

/** The states of a string, as offsets from STRING or KEY. HEX is four states, and CONTINUATION three. */
const TEXT = 0
const ESCAPE = 1
const HEX = 2
const CONTINUATION = 6
const AFTER_E0 = 9
const AFTER_ED = 10
const AFTER_F0 = 11
const AFTER_F4 = 12

type Bytes = string | readonly [first: number, last: number]

const BLANK = ' \t\r\n'
const DIGITS = '0123456789'
const HEX_DIGITS = '0123456789abcdefABCDEF'
/** ASCII that a string may contain unescaped: everything except controls, quote and backslash. */
const PLAIN_RANGES: readonly Bytes[] = [' !', [0x23, 0x5b], [0x5d, 0x7f]]

/** The table for one document. The entry of a state and a byte is at `state << 8 | byte`. */
export const DOCUMENT_TABLE = buildDocumentTable()
/** The table for JSON lines: a line feed is not a blank but separates objects. */
export const LINES_TABLE = buildLinesTable()
/** 1 for each byte that a string may contain as it is and that is ASCII. */
export const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => +(DOCUMENT_TABLE[(STRING << 8) | byte] === STRING))
/** The state after the first byte of a number or literal. */
export const SCALAR_STATES = buildScalarStates()

/** Whether the text may end in this state: after the outermost value, or within a number that is complete. */
export function mayEnd(state: State): boolean {
  return state === END || state === LINE || DOCUMENT_TABLE[(state << 8) | 0x20] === END_NUMBER
}

function buildDocumentTable(): Uint8Array {
  const table = new Uint8Array(FIRST_ACTION << 8).fill(FAILED)
  const on = (state: State, bytes: Bytes, next: number) => {
    for (const byte of codes(bytes)) table[(state << 8) | byte] = next
  }
  for (const state of [LINE, END, VALUE, FIRST_ELEMENT, AFTER_ELEMENT, FIRST_KEY, NEXT_KEY, COLON, AFTER_MEMBER]) {
    on(state, BLANK, state)
  }
  on(LINE, '{', OPEN_OBJECT)
  for (const state of [VALUE, FIRST_ELEMENT]) {
    on(state, '"', BEGIN_STRING)
    on(state, '{', OPEN_OBJECT)
    on(state, '[', OPEN_ARRAY)
    on(state, `-${DIGITS}`, BEGIN_NUMBER)
    on(state, 'tfn', BEGIN_LITERAL)
  }
  on(FIRST_ELEMENT, ']', CLOSE_ARRAY)
  on(AFTER_ELEMENT, ']', CLOSE_ARRAY)
  on(AFTER_ELEMENT, ',', VALUE)
  on(FIRST_KEY, '}', CLOSE_OBJECT)
  on(FIRST_KEY, '"', BEGIN_KEY)
  on(NEXT_KEY, '"', BEGIN_KEY)
  on(COLON, ':', VALUE)
  on(AFTER_MEMBER, '}', CLOSE_OBJECT)
  on(AFTER_MEMBER, ',', NEXT_KEY)
  addNumber(on)
  for (const [word, first] of [
    ['true', TRUE],
    ['false', FALSE],
    ['null', NULL],
  ] as const) {
    for (let i = 1; i < word.length; i++) {
      on(first + i - 1, word.charAt(i), i === word.length - 1 ? END_LITERAL : first + i)
    }
  }
  addString(on, STRING, RESUME_STRING, END_STRING)
  addString(on, KEY, RESUME_KEY, END_KEY)
  return table
}

type On = (state: State, bytes: Bytes, next: number) => void

function addNumber(on: On): void {
  for (const complete of [ZERO, INTEGER, FRACTION, EXPONENT_DIGITS]) on(complete, [0, 255], END_NUMBER)
  on(MINUS, '0', ZERO)
  on(MINUS, '123456789', INTEGER)
  on(INTEGER, DIGITS, INTEGER)
  on(POINT, DIGITS, FRACTION)
  on(FRACTION, DIGITS, FRACTION)
  for (const state of [ZERO, INTEGER]) on(state, '.', POINT)
  for (const state of [ZERO, INTEGER, FRACTION]) on(state, 'eE', EXPONENT)
  on(EXPONENT, '+-', EXPONENT_SIGN)
  for (const state of [EXPONENT, EXPONENT_SIGN, EXPONENT_DIGITS]) on(state, DIGITS, EXPONENT_DIGITS)
}

/** Adds the thirteen states of a string. UTF-8 is checked: overlong forms, surrogates and values over U+10FFFF fail. */
function addString(on: On, first: State, resume: number, end: number): void {
  for (const range of PLAIN_RANGES) on(first + TEXT, range, first + TEXT)
  on(first + TEXT, '"', end)
  on(first + TEXT, '\\', first + ESCAPE)
  on(first + ESCAPE, '"\\/bfnrt', resume)
  on(first + ESCAPE, 'u', first + HEX)
  for (let i = 0; i < 4; i++) on(first + HEX + i, HEX_DIGITS, i === 3 ? resume : first + HEX + i + 1)
  const lastTwo = first + CONTINUATION + 1
  const lastThree = first + CONTINUATION + 2
  on(first + TEXT, [0xc2, 0xdf], first + CONTINUATION)
  on(first + TEXT, [0xe1, 0xef], lastTwo)
  on(first + TEXT, [0xe0, 0xe0], first + AFTER_E0)
  on(first + TEXT, [0xed, 0xed], first + AFTER_ED)
  on(first + TEXT, [0xf1, 0xf3], lastThree)
  on(first + TEXT, [0xf0, 0xf0], first + AFTER_F0)
  on(first + TEXT, [0xf4, 0xf4], first + AFTER_F4)
  on(first + CONTINUATION, [0x80, 0xbf], resume)
  on(lastTwo, [0x80, 0xbf], first + CONTINUATION)
  on(lastThree, [0x80, 0xbf], lastTwo)
  on(first + AFTER_E0, [0xa0, 0xbf], first + CONTINUATION)
  on(first + AFTER_ED, [0x80, 0x9f], first + CONTINUATION)
  on(first + AFTER_F0, [0x90, 0xbf], lastTwo)
  on(first + AFTER_F4, [0x80, 0x8f], lastTwo)
}

function buildLinesTable(): Uint8Array {
  const table = Uint8Array.from(DOCUMENT_TABLE)
  for (let state = 0; state < FIRST_ACTION; state++) {
    table[(state << 8) | 0x0a] = state === LINE || state === END ? NEXT_LINE : FAILED
  }
  return table
}

function buildScalarStates(): Uint8Array {
  const states = new Uint8Array(256)
  for (const byte of codes('123456789')) states[byte] = INTEGER
  for (const [character, state] of Object.entries({ '-': MINUS, 0: ZERO, t: TRUE, f: FALSE, n: NULL })) {
    states[character.charCodeAt(0)] = state
  }
  return states
}

function codes(bytes: Bytes): readonly number[] {
  if (typeof bytes === 'string') return [...bytes].map(character => character.charCodeAt(0))
  const [first, last] = bytes
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}
