const ZERO = 0x30
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e

/** Exponents are read up to here; no input is so long that a larger one could make a difference. */
const MAX_EXPONENT = 1_000_000_000
/** 2^64 has twenty digits. */
const MAX_INTEGER_DIGITS = 20

/** A number of RFC 8259's grammar, as places in the input: no digit is lost, whatever is made of it. */
export class DecimalToken {
  isNegative = false
  /** The magnitude that `toInteger` found, in two unsigned halves. */
  low = 0
  high = 0
  private bytes: Buffer = Buffer.alloc(0)
  private start = 0
  private end = 0
  private wholeStart = 0
  private wholeEnd = 0
  private fractionEnd = 0
  private exponent = 0

  /** Reads the number at `start`; returns where it ends, or -1 if there is none. */
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

  /** Whether the number just read is integral, in whatever notation, and its magnitude below 2^64. */
  toInteger(): boolean {
    this.low = 0
    this.high = 0
    const first = this.firstNonZero()
    if (first === this.fractionEnd) return true
    const last = this.lastNonZero()
    const topPlace = this.placeOf(first)
    if (topPlace >= MAX_INTEGER_DIGITS || this.placeOf(last) < 0) return false
    let at = first
    for (let place = topPlace; place >= 0; place--) {
      if (at === this.wholeEnd) at++
      const digit = at <= last ? (this.bytes[at] as number) - ZERO : 0
      at++
      const low = this.low * 10 + digit
      this.low = low >>> 0
      this.high = this.high * 10 + Math.floor(low / 0x1_0000_0000)
    }
    return this.high <= 0xffff_ffff
  }

  /** Correctly rounded; infinite if too large. */
  toDouble(): number {
    return Number(this.bytes.toString('latin1', this.start, this.end))
  }

  /** The power of ten that the digit at a place in the input stands for. */
  private placeOf(at: number): number {
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

/** Of the digits and the point. */
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
