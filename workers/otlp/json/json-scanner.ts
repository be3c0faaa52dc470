import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { DecimalToken } from './decimal-token.ts'
import { INVALID_JSON, JSON_TOO_DEEP } from './json-refusals.ts'
import { endOfString, unescapeString } from './json-string.ts'

export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_ARRAY = 0x5b
export const CLOSE_ARRAY = 0x5d
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d

/**
 * Objects and arrays within each other. The deepest value that the decoder accepts, 64 maps in an exemplar's attribute,
 * takes 271.
 */
export const MAX_JSON_DEPTH = 300

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

/** RFC 8259 over the bytes of one text. Whatever is not JSON is refused, in what is skipped as well. */
export class JsonScanner {
  bytes: Buffer = Buffer.alloc(0)
  view: DataView = new DataView(new ArrayBuffer(0))
  pos = 0
  /** Where the text of the string just read by `readText` is: in the input, or unescaped in `scratch`. */
  text: Buffer = this.bytes
  textStart = 0
  textEnd = 0
  private readonly scratch = new GrowingBuffer()
  private readonly number = new DecimalToken()
  private readonly containers = new Uint8Array(MAX_JSON_DEPTH)

  /** Begins at the first byte, or after a byte order mark (RFC 8259, section 8.1, allows to ignore it). */
  reset(bytes: Buffer): void {
    this.scratch.reset()
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.text = bytes
    this.pos = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  }

  /** The next byte that is not white space, which is not consumed; 0 at the end. */
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

  /** Consumes this byte, after white space. */
  expect(byte: number): void {
    if (this.peek() !== byte) throw INVALID_JSON
    this.pos++
  }

  /** After an element: whether another one follows. Consumes the comma or the closing bracket. */
  another(close: number): boolean {
    const byte = this.peek()
    this.pos++
    if (byte === COMMA) return true
    if (byte === close) return false
    throw INVALID_JSON
  }

  /** Reads the string at its opening quote; `text` then holds it until the next call. */
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

  /** Skips a value of any shape that stands in `depth` objects and arrays. A loop: depth costs no call stack. */
  skipValue(depth: number): void {
    let open = 0
    do {
      const byte = this.peek()
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (depth + open >= MAX_JSON_DEPTH) throw JSON_TOO_DEEP
        // An opening bracket and the one that closes it are two apart in ASCII.
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

/** Whether a value can begin with this byte: what tells a value of the wrong type from what is no JSON. */
export function beginsValue(byte: number): boolean {
  switch (byte) {
    case QUOTE:
    case OPEN_OBJECT:
    case OPEN_ARRAY:
    case 0x2d:
    case 0x74:
    case 0x66:
    case 0x6e:
      return true
    default:
      return byte >= 0x30 && byte <= 0x39
  }
}
