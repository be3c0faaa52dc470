import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'

const ZERO = 48
const MINUS = 45
/** Where digits end. 2^64 has twenty digits. */
const END = 24
/** Digits of the current number, right-aligned before `END`. Copies by four bytes read a little beyond it. */
const digits = Buffer.alloc(END + 8)
const digitsView = new DataView(digits.buffer, digits.byteOffset, digits.byteLength)

/** Appends an int64, given as two unsigned halves in two's complement, as a String value in exact decimal. */
export function appendInt64(target: GrowingBuffer, low: number, high: number): void {
  if (high === 0 && low < 1_000) {
    appendShort(target, low)
    return
  }
  const start = writeDigits(low, high)
  target.string(digits, digitsView, start, END)
}

/** Appends an int64 in decimal without a length, for JSON. */
export function appendRawInt64(target: GrowingBuffer, low: number, high: number): void {
  const start = writeDigits(low, high)
  target.raw(digits, digitsView, start, END)
}

/** Appends a number below 1,000, as most are, without a copy. */
function appendShort(target: GrowingBuffer, value: number): void {
  target.reserve(4)
  const size = value < 10 ? 1 : value < 100 ? 2 : 3
  const end = target.length + 1 + size
  target.bytes[target.length] = size
  writeSmall(target.bytes, value, end)
  target.length = end
}

function writeDigits(low: number, high: number): number {
  let at = END
  const negative = high >>> 31 === 1
  let lower = low
  let upper = high
  if (negative) {
    lower = -low >>> 0
    upper = (~high + (low === 0 ? 1 : 0)) >>> 0
  }
  if (upper !== 0) at = writeWide(lower, upper)
  else at = writeSmall(digits, lower, at)
  if (negative) digits[--at] = MINUS
  return at
}

/** Writes a number of up to 32 bits so that it ends at `end`. Returns its start. */
function writeSmall(bytes: Buffer, value: number, end: number): number {
  let at = end
  let rest = value
  // Above 31 bits, division is slower.
  if (rest > 0x7fff_ffff) {
    rest = Math.floor(value / 10)
    bytes[--at] = ZERO + value - rest * 10
  }
  do {
    const quotient = (rest / 10) | 0
    bytes[--at] = ZERO + rest - quotient * 10
    rest = quotient
  } while (rest > 0)
  return at
}

/** Divides 64 bits by 10,000 repeatedly, sixteen bits at a time, so that every step is exact in a double. */
function writeWide(low: number, high: number): number {
  let at = END
  let a = high >>> 16
  let b = high & 0xffff
  let c = low >>> 16
  let d = low & 0xffff
  while (a !== 0 || b !== 0 || c > 0x1000) {
    let rest = a
    a = Math.floor(rest / 10_000)
    rest = (rest - a * 10_000) * 65_536 + b
    b = Math.floor(rest / 10_000)
    rest = (rest - b * 10_000) * 65_536 + c
    c = Math.floor(rest / 10_000)
    rest = (rest - c * 10_000) * 65_536 + d
    d = Math.floor(rest / 10_000)
    rest -= d * 10_000
    for (let i = 0; i < 4; i++) {
      digits[--at] = ZERO + (rest % 10)
      rest = Math.floor(rest / 10)
    }
  }
  return writeSmall(digits, c * 65_536 + d, at)
}

/** Returns the shortest text that reads back as the same double, including `NaN`, `Infinity`, `-Infinity` and `-0`. */
export function doubleText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

/** Returns a double as JSON. Integral doubles keep a point to differ from ints. NaN and infinities are strings. */
export function doubleJson(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`
  const text = doubleText(value)
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text
}
