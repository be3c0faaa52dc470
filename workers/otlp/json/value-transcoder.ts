import { hexValue } from './hex.ts'
import { type JsonScanner, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-scanner.ts'
import { copyString } from './json-string.ts'
import { type Field, FieldKind } from './message-type.ts'
import { NumberReader } from './number-reader.ts'
import type { ProtobufWriter } from './protobuf-writer.ts'

/** Limit above the length of all names of enum values. */
const MAX_WORD_BYTES = 64
const BOOLS: ReadonlyMap<string, number> = new Map([
  ['true', 1],
  ['false', 0],
  ['1', 1],
  ['0', 0],
])
/** Numbers of hex digits in ids of traces and spans. */
const LONG_ID_DIGITS = 32
const SHORT_ID_DIGITS = 16

/**
 * Rewrites single values other than messages from JSON to protobuf. A method returns false for a value that does not fit
 * its field, also one that is not JSON. It has then written nothing, and leaves the scanner where it was.
 */
export class ValueTranscoder {
  private readonly scanner: JsonScanner
  private readonly writer: ProtobufWriter
  private readonly numbers: NumberReader

  constructor(scanner: JsonScanner, writer: ProtobufWriter) {
    this.scanner = scanner
    this.writer = writer
    this.numbers = new NumberReader(scanner)
  }

  /** Writes a value with its tag. `first` is its first byte, at the position of the scanner. */
  field(field: Field, first: number): boolean {
    switch (field.kind) {
      case FieldKind.message:
        return false
      case FieldKind.string:
        if (first === QUOTE) this.string(field)
        else if (first === OPEN_OBJECT || first === OPEN_ARRAY) return false
        else this.text(field, first)
        return true
      case FieldKind.id:
        return first === QUOTE && this.id(field)
      case FieldKind.bytes:
        return first === QUOTE && this.base64(field)
      case FieldKind.bool:
        return this.bool(field, first)
      case FieldKind.enum:
        if (first === QUOTE) return this.enumName(field)
    }
    if (!this.readNumber(field)) return false
    this.writer.tag(field)
    this.writeNumber(field)
    return true
  }

  /** Writes a string, or the JSON of any other value, as a string with its tag. */
  text(field: Field, first: number): void {
    if (first === QUOTE) {
      this.string(field)
      return
    }
    const { scanner, writer } = this
    const { bytes, view, pos } = scanner
    writer.tag(field)
    scanner.skipValue()
    writer.out.string(bytes, view, pos, scanner.pos)
  }

  private string(field: Field): void {
    const { scanner, writer } = this
    writer.tag(field)
    scanner.pos = copyString(scanner.bytes, scanner.view, scanner.pos + 1, writer.out)
  }

  private bool(field: Field, first: number): boolean {
    let value: number | undefined
    if (first === 0x74) {
      this.scanner.readTrue()
      value = 1
    } else if (first === 0x66) {
      this.scanner.readFalse()
      value = 0
    } else {
      const { pos } = this.scanner
      value = BOOLS.get(this.readWord(first))
      if (value === undefined) {
        this.scanner.pos = pos
        return false
      }
    }
    this.writer.tag(field)
    this.writer.out.u8(value)
    return true
  }

  /** Writes an enum by name, or its number in a string. A field with an unknown name is ignored like an unknown field. */
  private enumName(field: Field): boolean {
    const { scanner, writer } = this
    const start = scanner.pos
    const word = this.readWord(QUOTE)
    const number = field.numbers?.get(word.toUpperCase())
    if (number !== undefined) {
      writer.tag(field)
      writer.out.u8(number)
      return true
    }
    const end = scanner.pos
    scanner.pos = start
    if (this.numbers.readInteger(FieldKind.enum)) {
      writer.tag(field)
      writer.varint(this.numbers.low, this.numbers.high)
    }
    scanner.pos = end
    return true
  }

  /** Reads a string or a number as a short text. Returns an empty one for any other value. */
  private readWord(first: number): string {
    const { scanner } = this
    if (first === OPEN_OBJECT || first === OPEN_ARRAY) return ''
    if (first === QUOTE) {
      scanner.readText()
      const { text, textStart, textEnd } = scanner
      return textEnd - textStart > MAX_WORD_BYTES ? '' : text.toString('latin1', textStart, textEnd)
    }
    const start = scanner.pos
    scanner.skipValue()
    return scanner.pos - start > MAX_WORD_BYTES ? '' : scanner.bytes.toString('latin1', start, scanner.pos)
  }

  /** Writes a number without a tag, as in a packed field. */
  number(field: Field): boolean {
    if (!this.readNumber(field)) return false
    this.writeNumber(field)
    return true
  }

  private readNumber({ kind }: Field): boolean {
    return kind === FieldKind.double ? this.numbers.readDouble() : this.numbers.readInteger(kind)
  }

  private writeNumber({ kind }: Field): void {
    const { writer } = this
    const { low, high, double } = this.numbers
    switch (kind) {
      case FieldKind.double:
        writer.double(double)
        break
      case FieldKind.fixed64:
      case FieldKind.sfixed64:
      case FieldKind.time:
        writer.out.u64(low, high)
        break
      case FieldKind.fixed32:
        writer.out.u32(low)
        break
      case FieldKind.sint32:
        // In ZigZag the sign is the lowest bit.
        writer.varint(((low << 1) ^ (low >> 31)) >>> 0, 0)
        break
      default:
        writer.varint(low, high)
    }
  }

  private id(field: Field): boolean {
    this.writer.tag(field)
    const { bytes, pos } = this.scanner
    const digits = pos + 1
    if (digits + LONG_ID_DIGITS < bytes.length) {
      let count = 0
      if (bytes[digits + LONG_ID_DIGITS] === QUOTE) count = LONG_ID_DIGITS
      if (bytes[digits + SHORT_ID_DIGITS] === QUOTE) count = SHORT_ID_DIGITS
      if (count > 0 && this.hex(bytes, digits, digits + count)) {
        this.scanner.pos = digits + count + 1
        return true
      }
    }
    this.uncommonId()
    return true
  }

  /**
   * Writes an id of another length, with escapes, or malformed. A malformed id is written as a single byte, which is
   * never valid, so the decoder rejects only this record.
   */
  private uncommonId(): void {
    const scanner = this.scanner
    scanner.readText()
    if ((scanner.textEnd - scanner.textStart) % 2 === 0) {
      if (this.hex(scanner.text, scanner.textStart, scanner.textEnd)) return
    }
    this.writer.out.u8(1)
    this.writer.out.u8(0)
  }

  /** Writes a length and the bytes of an even number of hex digits. Returns false and writes nothing for other text. */
  private hex(text: Buffer, start: number, end: number): boolean {
    const out = this.writer.out
    const before = out.length
    const size = (end - start) >>> 1
    out.varint(size)
    out.reserve(size)
    const target = out.bytes
    let at = out.length
    let all = 0
    for (let pos = start; pos < end; pos += 2) {
      const byte = hexValue(text[pos] as number, text[pos + 1] as number)
      all |= byte
      target[at++] = byte
    }
    out.length = all > 0xff ? before : at
    return all <= 0xff
  }

  private base64(field: Field): boolean {
    const { scanner, writer } = this
    const { pos } = scanner
    const out = writer.out
    const before = out.length
    writer.tag(field)
    scanner.readText()
    const start = writer.openLength(1)
    out.reserve(scanner.textEnd - scanner.textStart)
    const end = decodeBase64(scanner.text, scanner.textStart, scanner.textEnd, out.bytes, start)
    if (end < 0) {
      scanner.pos = pos
      out.length = before
      return false
    }
    out.length = end
    writer.closeLength(start, 1)
    return true
  }
}

const OTHER = 0xff
const SEXTETS = new Uint8Array(256).fill(OTHER)
for (const [value, letter] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  SEXTETS[letter.charCodeAt(0)] = value
}
SEXTETS[0x2d] = 62
SEXTETS[0x5f] = 63

const PADDING = 0x3d

/**
 * Decodes `[start, end)` to position `at` of `target`. Accepts the standard and the URL-safe alphabet, with or without
 * padding (RFC 4648). Returns the end of the bytes in `target`, or -1. `Buffer.from` would skip invalid characters.
 */
function decodeBase64(text: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let last = end
  while (last > start && last > end - 2 && text[last - 1] === PADDING) last--
  if ((last - start) % 4 === 1 || (last < end && (end - start) % 4 !== 0)) return -1
  let to = at
  let bits = 0
  let held = 0
  for (let pos = start; pos < last; pos++) {
    const sextet = SEXTETS[text[pos] as number] as number
    if (sextet === OTHER) return -1
    bits = ((bits << 6) | sextet) & 0xffff
    held += 6
    if (held >= 8) {
      held -= 8
      target[to++] = (bits >> held) & 0xff
    }
  }
  return to
}
