import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { DecimalToken } from './decimal-token.ts'
import { INVALID_JSON, JSON_TOO_DEEP } from './json-refusals.ts'
import { endOfString, unescapeString } from './json-string.ts'

/** Byte of `"`. */
export const QUOTE = 0x22
/** Byte of `,`. */
const COMMA = 0x2c
/** Byte of `:`. */
export const COLON = 0x3a
/** Byte of `[`. */
export const OPEN_ARRAY = 0x5b
/** Byte of `]`. */
export const CLOSE_ARRAY = 0x5d
/** Byte of `{`. */
export const OPEN_OBJECT = 0x7b
/** Byte of `}`. */
export const CLOSE_OBJECT = 0x7d

/** Largest depth of objects and arrays in a value that is skipped. */
const MAX_SKIPPED_DEPTH = 10_000

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

/** Scanner of JSON (RFC 8259) over the bytes of one text. It refuses invalid JSON, in skipped values too. */
export class JsonScanner {
  bytes: Buffer = Buffer.alloc(0)
  view: DataView = new DataView(new ArrayBuffer(0))
  pos = 0
  /** Buffer with the string that `readText` read last: the input, or `scratch` with the unescaped text. */
  text: Buffer = this.bytes
  textStart = 0
  textEnd = 0
  private readonly scratch = new GrowingBuffer()
  private readonly number = new DecimalToken()
  private readonly containers = new Uint8Array(MAX_SKIPPED_DEPTH)

  /** Begins a text, after its byte order mark if it has one (RFC 8259, section 8.1, allows ignoring it). */
  reset(bytes: Buffer): void {
    this.scratch.reset()
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.text = bytes
    this.pos = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  }

  /** Returns the next byte that is not white space without consuming it, or 0 at the end. */
  peek(): number {
    const byte = this.pos < this.bytes.length ? (this.bytes[this.pos] as number) : 0
    return byte > 0x20 ? byte : this.peekPastSpace()
  }

  private peekPastSpace(): number {
    const bytes = this.bytes
    for (let pos = this.pos; pos < bytes.length; pos++) {
      const byte = bytes[pos] as number
      if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue
      this.pos = pos
      return byte === 0 ? 1 : byte
    }
    this.pos = bytes.length
    return 0
  }

  /** Consumes white space and then this byte. */
  expect(byte: number): void {
    if (this.peek() !== byte) throw INVALID_JSON
    this.pos++
  }

  /** Consumes the comma or the closing bracket after an element. Returns whether another element follows. */
  another(close: number): boolean {
    const byte = this.peek()
    this.pos++
    if (byte === COMMA) return true
    if (byte === close) return false
    throw INVALID_JSON
  }

  /** Reads the string at its opening quote. `text` contains it until the next call. */
  readText(): void {
    const start = this.pos + 1
    const close = endOfString(this.bytes, this.view, start)
    this.pos = (close < 0 ? ~close : close) + 1
    if (close >= 0) {
      this.text = this.bytes
      this.textStart = start
      this.textEnd = close
      return
    }
    this.scratch.reset()
    unescapeString(this.bytes, this.view, start, ~close, this.scratch)
    this.text = this.scratch.bytes
    this.textStart = 0
    this.textEnd = this.scratch.length
  }

  readNull(): void {
    this.readLiteral(NULL)
  }

  readTrue(): void {
    this.readLiteral(TRUE)
  }

  readFalse(): void {
    this.readLiteral(FALSE)
  }

  private readLiteral(literal: Buffer): void {
    const { bytes, pos } = this
    if (pos + literal.length > bytes.length) throw INVALID_JSON
    for (let i = 0; i < literal.length; i++) if (bytes[pos + i] !== literal[i]) throw INVALID_JSON
    this.pos = pos + literal.length
  }

  /** Skips a value. It is a loop, so that depth costs no call stack. */
  skipValue(): void {
    let open = 0
    do {
      const byte = this.peek()
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (open === MAX_SKIPPED_DEPTH) throw JSON_TOO_DEEP
        // In ASCII a closing bracket is two after its opening bracket.
        this.containers[open++] = byte + 2
        this.pos++
        if (this.peek() !== byte + 2) {
          if (byte === OPEN_OBJECT) this.skipKey()
          continue
        }
        this.pos++
        open--
      } else this.skipScalar(byte)
      while (open > 0) {
        const close = this.containers[open - 1] as number
        if (this.another(close)) {
          if (close === CLOSE_OBJECT) this.skipKey()
          break
        }
        open--
      }
    } while (open > 0)
  }

  private skipKey(): void {
    if (this.peek() !== QUOTE) throw INVALID_JSON
    this.skipString()
    this.expect(COLON)
  }

  private skipString(): void {
    const close = endOfString(this.bytes, this.view, this.pos + 1)
    this.pos = (close < 0 ? ~close : close) + 1
  }

  private skipScalar(first: number): void {
    switch (first) {
      case QUOTE:
        this.skipString()
        break
      case 0x74:
        this.readTrue()
        break
      case 0x66:
        this.readFalse()
        break
      case 0x6e:
        this.readNull()
        break
      default: {
        const end = this.number.read(this.bytes, this.pos, this.bytes.length)
        if (end < 0) throw INVALID_JSON
        this.pos = end
      }
    }
  }
}
