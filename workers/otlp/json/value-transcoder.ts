import { hexValue } from './hex.ts'
import { INVALID_JSON, INVALID_JSON_VALUE, type JsonRefusal } from './json-refusals.ts'
import { beginsValue, type JsonScanner, QUOTE } from './json-scanner.ts'
import { copyString } from './json-string.ts'
import { type Field, FieldKind } from './message-type.ts'
import { NumberReader } from './number-reader.ts'
import type { ProtobufWriter } from './protobuf-writer.ts'

/** Limit above the length of all names of enum values. */
const MAX_ENUM_NAME_BYTES = 64
/** Numbers of hex digits in ids of traces and spans. */
const LONG_ID_DIGITS = 32
const SHORT_ID_DIGITS = 16

/** Rewrites single values other than messages from JSON to protobuf. */
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
  field(field: Field, first: number): void {
    switch (field.kind) {
      case FieldKind.string:
        if (first !== QUOTE) throw wrongType(first)
        this.string(field)
        break
      case FieldKind.id:
        if (first !== QUOTE) throw wrongType(first)
        this.id(field)
        break
      case FieldKind.bytes:
        if (first !== QUOTE) throw wrongType(first)
        this.base64(field)
        break
      case FieldKind.bool:
        this.bool(field, first)
        break
      case FieldKind.enum:
        if (first === QUOTE) {
          this.enumName(field)
          break
        }
        this.writer.tag(field)
        this.number(field)
        break
      default:
        this.writer.tag(field)
        this.number(field)
    }
  }

  private string(field: Field): void {
    const { scanner, writer } = this
    writer.tag(field)
    scanner.pos = copyString(scanner.bytes, scanner.view, scanner.pos + 1, writer.out)
  }

  private bool(field: Field, first: number): void {
    const isTrue = first === 0x74
    if (isTrue) this.scanner.readTrue()
    else if (first === 0x66) this.scanner.readFalse()
    else throw wrongType(first)
    this.writer.tag(field)
    this.writer.out.u8(isTrue ? 1 : 0)
  }

  /** Writes an enum by name. A field with an unknown name is ignored like an unknown field. */
  private enumName(field: Field): void {
    const scanner = this.scanner
    scanner.readText()
    if (scanner.textEnd - scanner.textStart > MAX_ENUM_NAME_BYTES) return
    const number = field.numbers?.get(scanner.text.toString('latin1', scanner.textStart, scanner.textEnd))
    if (number === undefined) return
    this.writer.tag(field)
    this.writer.out.u8(number)
  }

  /** Writes a number without a tag, as in a packed field. */
  number(field: Field): void {
    const { writer, numbers } = this
    if (field.kind === FieldKind.double) {
      writer.double(numbers.readDouble())
      return
    }
    numbers.readInteger(field.kind)
    const { low, high } = numbers
    switch (field.kind) {
      case FieldKind.fixed64:
      case FieldKind.sfixed64:
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

  private id(field: Field): void {
    this.writer.tag(field)
    const { bytes, pos } = this.scanner
    const digits = pos + 1
    if (digits + LONG_ID_DIGITS < bytes.length) {
      let count = 0
      if (bytes[digits + LONG_ID_DIGITS] === QUOTE) count = LONG_ID_DIGITS
      if (bytes[digits + SHORT_ID_DIGITS] === QUOTE) count = SHORT_ID_DIGITS
      if (count > 0 && this.hex(bytes, digits, digits + count)) {
        this.scanner.pos = digits + count + 1
        return
      }
    }
    this.uncommonId()
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

  private base64(field: Field): void {
    const { scanner, writer } = this
    const out = writer.out
    writer.tag(field)
    scanner.readText()
    const start = writer.openLength(1)
    out.reserve(scanner.textEnd - scanner.textStart)
    const end = decodeBase64(scanner.text, scanner.textStart, scanner.textEnd, out.bytes, start)
    if (end < 0) throw INVALID_JSON_VALUE
    out.length = end
    writer.closeLength(start, 1)
  }
}

/** Returns the refusal of a value that begins with this byte where another type is expected. */
export function wrongType(first: number): JsonRefusal {
  return beginsValue(first) ? INVALID_JSON_VALUE : INVALID_JSON
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
