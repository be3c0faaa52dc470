const QUOTE = 0x22
const ZERO = 0x30
const POINT = 0x2e
const MINUS = Buffer.from('-')
const HEX_DIGITS = Buffer.from('0123456789abcdef')

/** 1 for each byte that is a character by itself and is not escaped in JSON. */
const IS_PLAIN = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== 0x5c ? 1 : 0,
)

/** Milliseconds have six decimals of nanoseconds. */
const NANOS_PER_MS = 1e6
/** Below it, a double has every digit of a number of nanoseconds in milliseconds: 15 digits. */
const EXACT_NANOS = 1e15

/** Writes JSON as bytes, without strings in between. */
export class JsonWriter {
  #bytes: Buffer
  #at = 0
  /** The last formatted second of a time. The spans of a trace start within a few seconds of each other. */
  #second = -1
  #secondText: Uint8Array = new Uint8Array(0)

  /** `capacity` is the expected size in bytes. */
  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity)
  }

  /** Appends bytes as they are. */
  piece(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length)
    const target = this.#bytes
    for (let i = 0; i < bytes.length; i++) target[at + i] = bytes[i] as number
    this.#at = at + bytes.length
  }

  /** Appends ASCII text as it is. */
  ascii(text: string): void {
    const at = this.#reserve(text.length)
    this.#at = at + this.#bytes.write(text, at, 'latin1')
  }

  /** Appends a word of 32 bits in eight digits of hex. */
  hexWord(word: number): void {
    const at = this.#reserve(8)
    const target = this.#bytes
    for (let i = 0; i < 8; i++) target[at + i] = HEX_DIGITS[(word >>> (28 - 4 * i)) & 15] as number
    this.#at = at + 8
  }

  /**
   * Appends the text `source[start, end)` with quotes. Bytes that are not UTF-8 become U+FFFD, as when a string is made of
   * them.
   */
  text(source: Buffer, start: number, end: number): void {
    let at = this.#reserve(end - start + 2)
    const target = this.#bytes
    target[at++] = QUOTE
    for (let i = start; i < end; i++) {
      const byte = source[i] as number
      if (IS_PLAIN[byte] === 0) {
        this.#string(JSON.stringify(source.toString('utf8', start, end)))
        return
      }
      target[at++] = byte
    }
    target[at++] = QUOTE
    this.#at = at
  }

  /** Appends a whole number that is not negative, below 2^53. */
  integer(value: number): void {
    let digits = 1
    for (let bound = 10; value >= bound; bound *= 10) digits++
    this.#digits(value, digits)
  }

  /** Appends a whole number, between -2^53 and 2^53. */
  signed(value: number): void {
    if (value < 0) this.piece(MINUS)
    this.integer(Math.abs(value))
  }

  /** Appends Unix nanoseconds, given as seconds and rest, in decimal digits. */
  unixNano(seconds: number, nanos: number): void {
    if (seconds === 0) {
      this.integer(nanos)
      return
    }
    this.integer(seconds)
    this.#digits(nanos, 9)
  }

  /** Appends Unix nanoseconds as RFC 3339 in UTC with nine decimals: `2026-11-20T11:27:03.000000042Z`. */
  timestamp(seconds: number, nanos: number): void {
    if (seconds !== this.#second) {
      this.#secondText = Buffer.from(new Date(seconds * 1_000).toISOString().slice(0, 19), 'latin1')
      this.#second = seconds
    }
    this.piece(this.#secondText)
    const at = this.#reserve(1)
    this.#bytes[at] = POINT
    this.#at = at + 1
    this.#digits(nanos, 9)
    this.ascii('Z')
  }

  /** Appends nanoseconds as a number of milliseconds with its fraction, or 0 if they are negative. */
  milliseconds(nanos: number): void {
    if (!(nanos > 0)) {
      this.integer(0)
      return
    }
    if (nanos >= EXACT_NANOS) {
      this.ascii(String(nanos / NANOS_PER_MS))
      return
    }
    const whole = Math.floor(nanos / NANOS_PER_MS)
    let fraction = nanos - whole * NANOS_PER_MS
    this.integer(whole)
    if (fraction === 0) return
    const at = this.#reserve(1)
    this.#bytes[at] = POINT
    this.#at = at + 1
    let digits = 6
    for (; fraction % 10 === 0; fraction /= 10) digits--
    this.#digits(fraction, digits)
  }

  /** The bytes that were written since the beginning, or since `take`. */
  get size(): number {
    return this.#at
  }

  /** Returns what was written, and begins again in the same memory: the bytes are valid until the next one is written. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#at)
    this.#at = 0
    return taken
  }

  /** Returns what was written. Nothing may be written afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  #string(text: string): void {
    const at = this.#reserve(Buffer.byteLength(text))
    this.#at = at + this.#bytes.write(text, at)
  }

  /** Appends a whole number in this many digits. */
  #digits(value: number, count: number): void {
    const at = this.#reserve(count)
    const target = this.#bytes
    let rest = value
    for (let i = at + count - 1; i >= at; i--) {
      const tenth = rest < 0x8000_0000 ? (rest / 10) | 0 : Math.floor(rest / 10)
      target[i] = ZERO + rest - 10 * tenth
      rest = tenth
    }
    this.#at = at + count
  }

  /** Makes room for `size` more bytes. Returns the position where they belong. */
  #reserve(size: number): number {
    const needed = this.#at + size
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length))
      this.#bytes.copy(larger, 0, 0, this.#at)
      this.#bytes = larger
    }
    return this.#at
  }
}

/** Returns the bytes of the text `source[start, end)` in JSON, with quotes. */
export function jsonTextBytes(source: Buffer, start: number, end: number): number {
  for (let i = start; i < end; i++) {
    if (IS_PLAIN[source[i] as number] === 0) {
      return Buffer.byteLength(JSON.stringify(source.toString('utf8', start, end)))
    }
  }
  return end - start + 2
}
