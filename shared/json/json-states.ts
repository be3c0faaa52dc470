/** What a JSON machine waits for between two bytes. Plain numbers: they are compared once or more for each byte. */
export const LINE = 0
export const LINE_END = 1
export const VALUE = 2
export const VALUE_OR_END = 3
export const KEY_OR_END = 4
export const KEY = 5
export const COLON = 6
export const COMMA_OR_END = 7
export const STRING = 8
export const ESCAPE = 9
export const HEX = 10
export const UTF8 = 11
export const LITERAL = 12
export const MINUS = 13
export const ZERO = 14
export const INTEGER = 15
export const POINT = 16
export const FRACTION = 17
export const EXPONENT = 18
export const EXPONENT_SIGN = 19
export const EXPONENT_DIGITS = 20
export const FAILED = 21
export type State = number

export const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39
export const isHexDigit = (byte: number) =>
  isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)
/** COMMA_OR_END: the number has ended before this byte. */
export function nextOfNumber(state: State, byte: number): State {
  const digit = isDigit(byte)
  switch (state) {
    case MINUS:
      return byte === 0x30 ? ZERO : digit ? INTEGER : FAILED
    case POINT:
      return digit ? FRACTION : FAILED
    case EXPONENT:
      return byte === 0x2b || byte === 0x2d ? EXPONENT_SIGN : digit ? EXPONENT_DIGITS : FAILED
    case EXPONENT_SIGN:
      return digit ? EXPONENT_DIGITS : FAILED
  }
  if (digit && state !== ZERO) return state
  if (byte === 0x2e && (state === ZERO || state === INTEGER)) return POINT
  if ((byte === 0x65 || byte === 0x45) && state !== EXPONENT_DIGITS) return EXPONENT
  return COMMA_OR_END
}
