const ZERO = 0x30
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e

/** Largest exponent that is read. No input is long enough for a larger one to matter. */
const MAX_EXPONENT = 1_000_000_000
/** 2^64 has twenty digits. */
const MAX_INTEGER_DIGITS = 20

/** A number in the grammar of RFC 8259, kept as positions in the input, so that no digit is lost. */
export class DecimalToken {
  isNegative = false
  /** Magnitude from `toInteger`, in two unsigned halves. */
  low = 0
  high = 0
  private bytes: Buffer = Buffer.alloc(0)
  private start = 0
  private end = 0
  private wholeStart = 0
  private wholeEnd = 0
  private fractionEnd = 0
  private exponent = 0

  /** Reads the number at `start`. Returns its end, or -1 if there is none. */
  read(bytes: Buffer, start: number, end: number): number {
    let at = start
    this.isNegative = at < end && bytes[at] === MINUS
    if (this.isNegative) at++
    this.wholeStart = at
    at = afterDigits(bytes, at, end)
    this.wholeEnd = at
    const digits = at - this.wholeStart
    if (digits === 0 || (digits > 1 && bytes[this.wholeStart] === ZERO)) return -1
    if (at < end && bytes[at] === POINT) {
      at = afterDigits(bytes, at + 1, end)
      if (at === this.wholeEnd + 1) return -1
    }
    this.fractionEnd = at
    this.exponent = 0
    if (at < end && ((bytes[at] as number) | 0x20) === 0x65) {
      at = this.readExponent(bytes, at + 1, end)
      if (at < 0) return -1
    }
    this.bytes = bytes
    this.start = start
    this.end = at
    return at
  }

  private readExponent(bytes: Buffer, start: number, end: number): number {
    const sign = start < end ? bytes[start] : 0
    const first = sign === MINUS || sign === PLUS ? start + 1 : start
    const last = afterDigits(bytes, first, end)
    if (last === first) return -1
    let exponent = 0
    for (let at = first; at < last && exponent < MAX_EXPONENT; at++) {
      exponent = exponent * 10 + (bytes[at] as number) - ZERO
    }
    this.exponent = sign === MINUS ? -exponent : exponent
    return last
  }

  /**
   * Returns whether the last number is integral, in any notation, and its magnitude is below 2^64. With `cutsFraction`, a
   * fraction is ignored.
   */
  toInteger(cutsFraction: boolean): boolean {
    this.low = 0
    this.high = 0
    const first = this.firstNonZero()
    if (first === this.fractionEnd) return true
    const last = this.lastNonZero()
    const topExponent = this.exponentOf(first)
    if (topExponent >= MAX_INTEGER_DIGITS || (!cutsFraction && this.exponentOf(last) < 0)) return false
    let at = first
    for (let power = topExponent; power >= 0; power--) {
      if (at === this.wholeEnd) at++
      const digit = at <= last ? (this.bytes[at] as number) - ZERO : 0
      at++
      const low = this.low * 10 + digit
      this.low = low >>> 0
      this.high = this.high * 10 + Math.floor(low / 0x1_0000_0000)
    }
    return this.high <= 0xffff_ffff
  }

  /** Returns the number as a correctly rounded double, infinite if it is too large. */
  toDouble(): number {
    return Number(this.bytes.toString('latin1', this.start, this.end))
  }

  /** Returns the power of ten of the digit at a position in the input. */
  private exponentOf(at: number): number {
    return (at < this.wholeEnd ? this.wholeEnd - 1 - at : this.wholeEnd - at) + this.exponent
  }

  private firstNonZero(): number {
    let at = this.wholeStart
    while (at < this.fractionEnd && !isNonZero(this.bytes[at] as number)) at++
    return at
  }

  private lastNonZero(): number {
    let at = this.fractionEnd - 1
    while (!isNonZero(this.bytes[at] as number)) at--
    return at
  }
}

/** Returns whether a digit or a point is a digit other than zero. */
function isNonZero(byte: number): boolean {
  return byte > ZERO
}

function afterDigits(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && isDigit(bytes[at] as number)) at++
  return at
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39
}
