import { DecimalToken } from './decimal-token.ts'
import { type JsonScanner, QUOTE } from './json-scanner.ts'
import { FieldKind } from './message-type.ts'

const MINUS = 0x2d
const POINT = 0x2e
/** If this much input is left, a number of twenty digits can be read without bounds checks. */
const LOOKAHEAD_BYTES = 24
const POWERS_OF_TEN = Float64Array.from({ length: 23 }, (_, i) => 10 ** i)
/** Names of doubles that JSON has no number for, in lower case. Protobuf writes `NaN`, `Infinity` and `-Infinity`. */
const NAMED_DOUBLES: ReadonlyMap<string, number> = new Map(
  ['inf', 'infinity', '+inf', '+infinity']
    .map((name): [string, number] => [name, Number.POSITIVE_INFINITY])
    .concat(
      ['-inf', '-infinity'].map(name => [name, Number.NEGATIVE_INFINITY]),
      [['nan', Number.NaN]],
    ),
)
const MAX_NAME_BYTES = '-infinity'.length

/**
 * Reads numbers of protobuf's JSON mapping: JSON numbers or strings, with integers in any integral notation. Plain
 * digits are read directly; other notations go through `DecimalToken`. A reader returns false for everything else, also
 * for what is not JSON, and leaves the scanner where it was.
 */
export class NumberReader {
  /** The last integer in two's complement, as two unsigned halves. */
  low = 0
  high = 0
  /** The last double. */
  double = 0
  private readonly scanner: JsonScanner
  private readonly token = new DecimalToken()

  constructor(scanner: JsonScanner) {
    this.scanner = scanner
  }

  /** Reads an integer within the range of the kind into `low` and `high`. */
  readInteger(kind: FieldKind): boolean {
    const { pos } = this.scanner
    const negative = this.readDigits() ?? this.readUncommonInteger(kind === FieldKind.time)
    if (negative === undefined || !isInRange(kind, negative, this.low, this.high)) {
      this.scanner.pos = pos
      return false
    }
    if (negative) {
      this.high = (~this.high + (this.low === 0 ? 1 : 0)) >>> 0
      this.low = -this.low >>> 0
    }
    return true
  }

  /** Reads up to twenty digits, as number or string. Returns whether there is a minus, or undefined for other forms. */
  private readDigits(): boolean | undefined {
    const { bytes, pos } = this.scanner
    if (pos + LOOKAHEAD_BYTES > bytes.length) return undefined
    let at = pos
    const quoted = bytes[at] === QUOTE
    if (quoted) at++
    const negative = bytes[at] === MINUS
    if (negative) at++
    const first = at
    const head = digitsAt(bytes, at, at + 9)
    at = digitsEnd
    this.low = head
    this.high = 0
    if (at === first + 9) {
      // head * 10^n + tail, n up to 9: both are below 2^30, so the upper half of head times 2^15 is exact in a double.
      const tail = digitsAt(bytes, at, at + 9)
      const scale = POWERS_OF_TEN[digitsEnd - at] as number
      at = digitsEnd
      const upper = (head >>> 15) * scale
      const upperHigh = Math.floor(upper / 0x2_0000)
      const sum = (upper - upperHigh * 0x2_0000) * 0x8000 + (head & 0x7fff) * scale + tail
      this.low = sum >>> 0
      this.high = upperHigh + Math.floor(sum / 0x1_0000_0000)
      if (at === first + 18) {
        const rest = digitsAt(bytes, at, at + 2)
        if (digitsEnd > at) this.extend(rest, digitsEnd - at === 1 ? 10 : 100)
        at = digitsEnd
      }
    }
    const after = bytes[at] as number
    if (at === first || (bytes[first] === 0x30 && at > first + 1) || this.high > 0xffff_ffff) return undefined
    if (quoted) {
      if (after !== QUOTE) return undefined
      this.scanner.pos = at + 1
    } else {
      if (after === POINT || (after | 0x20) === 0x65 || isDigit(after)) return undefined
      this.scanner.pos = at
    }
    return negative
  }

  private extend(digits: number, scale: number): void {
    const low = this.low * scale + digits
    this.low = low >>> 0
    this.high = this.high * scale + Math.floor(low / 0x1_0000_0000)
  }

  private readUncommonInteger(cutsFraction: boolean): boolean | undefined {
    const token = this.token
    if (!this.readToken() || !token.toInteger(cutsFraction)) return undefined
    this.low = token.low
    this.high = token.high
    return token.isNegative && (this.low !== 0 || this.high !== 0)
  }

  /** Reads a number, or a number in a string. */
  private readToken(): boolean {
    const scanner = this.scanner
    if (scanner.peek() === QUOTE) {
      scanner.readText()
      return this.token.read(scanner.text, scanner.textStart, scanner.textEnd) === scanner.textEnd
    }
    const end = this.token.read(scanner.bytes, scanner.pos, scanner.bytes.length)
    if (end < 0) return false
    scanner.pos = end
    return true
  }

  /** Reads a finite double, or a string that names another one, into `double`. */
  readDouble(): boolean {
    const { bytes, pos } = this.scanner
    if (pos + LOOKAHEAD_BYTES > bytes.length) return this.readUncommonDouble()
    let at = pos
    const quoted = bytes[at] === QUOTE
    if (quoted) at++
    const negative = bytes[at] === MINUS
    if (negative) at++
    const first = at
    const last = first + 17
    let mantissa = 0
    let point = -1
    for (; at < last; at++) {
      const byte = bytes[at] as number
      if (isDigit(byte)) mantissa = mantissa * 10 + byte - 0x30
      else if (byte === POINT && point < 0) point = at
      else break
    }
    // Below 2^53 the digits and the power of ten are exact, so one division rounds to the correct double.
    const after = bytes[at] as number
    const fraction = point < 0 ? 0 : at - point - 1
    const isPlain =
      mantissa < 9_007_199_254_740_992 &&
      at > first &&
      point !== first &&
      (point < 0 || fraction > 0) &&
      (bytes[first] !== 0x30 || at === first + 1 || point === first + 1) &&
      (quoted ? after === QUOTE : !isDigit(after) && after !== POINT && (after | 0x20) !== 0x65)
    if (!isPlain) return this.readUncommonDouble()
    this.scanner.pos = quoted ? at + 1 : at
    const magnitude = mantissa / (POWERS_OF_TEN[fraction] as number)
    this.double = negative ? -magnitude : magnitude
    return true
  }

  private readUncommonDouble(): boolean {
    const { scanner } = this
    const { pos } = scanner
    const isText = scanner.peek() === QUOTE
    let double: number | undefined
    if (this.readToken()) {
      double = this.token.toDouble()
      if (!Number.isFinite(double)) double = undefined
    } else if (isText) double = nameOfDouble(scanner.text, scanner.textStart, scanner.textEnd)
    this.double = double ?? 0
    if (double === undefined) scanner.pos = pos
    return double !== undefined
  }
}

/** End of the digits that `digitsAt` read last. */
let digitsEnd = 0

/** Returns the value of up to nine digits. `limit` is at most nine away, so the value fits into 30 bits. */
function digitsAt(bytes: Buffer, start: number, limit: number): number {
  let value = 0
  let at = start
  for (; at < limit; at++) {
    const digit = (bytes[at] as number) - 0x30
    if (digit < 0 || digit > 9) break
    value = value * 10 + digit
  }
  digitsEnd = at
  return value
}

function isInRange(kind: FieldKind, negative: boolean, low: number, high: number): boolean {
  switch (kind) {
    case FieldKind.uint32:
    case FieldKind.fixed32:
      return high === 0 && (!negative || low === 0)
    case FieldKind.sint32:
    case FieldKind.enum:
      return high === 0 && low <= (negative ? 0x8000_0000 : 0x7fff_ffff)
    case FieldKind.int64:
    case FieldKind.sfixed64:
      return high < 0x8000_0000 || (negative && high === 0x8000_0000 && low === 0)
    default:
      return !negative || (low === 0 && high === 0)
  }
}

function nameOfDouble(text: Buffer, start: number, end: number): number | undefined {
  if (end - start > MAX_NAME_BYTES) return undefined
  return NAMED_DOUBLES.get(text.toString('latin1', start, end).toLowerCase())
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}
