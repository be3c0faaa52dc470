import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { RowsTooLarge } from '../../../clickhouse/native/rows-too-large.ts'
import { decodeBase64 } from './base64.ts'
import { hexValue } from './hex.ts'
import {
  INVALID_JSON,
  INVALID_JSON_VALUE,
  JSON_TOO_DEEP,
  JsonRefusal,
  type JsonRefusalReason,
} from './json-refusals.ts'
import {
  beginsValue,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  JsonScanner,
  MAX_JSON_DEPTH,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from './json-scanner.ts'
import { REQUEST_TYPES } from './json-schema.ts'
import { copyString, writeLength } from './json-string.ts'
import { type Field, FieldKind, MAX_KEY_BYTES, type MessageType } from './message-type.ts'
import { NumberReader } from './number-reader.ts'

export type TranscodeResult =
  | {
      ok: true
      /** A view that holds until the next call. */
      message: Buffer
    }
  | { ok: false; reason: JsonRefusalReason }

export interface JsonTranscoder {
  /** The Export…ServiceRequest that an OTLP/JSON body says, as protobuf. Never throws for bad input. */
  transcode(signal: keyof typeof REQUEST_TYPES, body: Buffer): TranscodeResult
}

/**
 * OTLP/JSON to OTLP/protobuf in one pass over the bytes, without an object per value, so that both encodings go through
 * one decoder and give the same rows. Protobuf's JSON mapping with OTLP's exceptions (OTLP specification, "JSON Protobuf
 * Encoding"): hex ids, integer enums (names tolerated), lowerCamelCase keys only, unknown fields ignored. `null` is an
 * absent field, but no element of an array. Of a key that repeats, the last value counts, as in protobuf: messages are
 * merged, arrays concatenated.
 */
export function createJsonTranscoder(): JsonTranscoder {
  const walk = new JsonWalk()
  return {
    transcode(signal, body) {
      try {
        return { ok: true, message: walk.run(REQUEST_TYPES[signal], body) }
      } catch (error) {
        if (error instanceof JsonRefusal) return { ok: false, reason: error.reason }
        if (error instanceof RowsTooLarge) return { ok: false, reason: 'rows_too_large' }
        throw error
      } finally {
        walk.release()
      }
    },
  }
}

const NOTHING = Buffer.alloc(0)
/** A message that is nested deeper than the protocol itself goes is never moved: see `closeLength`. */
const DEEP = 24
const DEEP_LENGTH_BYTES = 4
/** A tag and any number, or a tag and a length. */
const TAG_AND_NUMBER_BYTES = 16
/** Longer than any name of an enum's value. */
const MAX_ENUM_NAME_BYTES = 64
/** Ids of traces and spans as hex. */
const LONG_ID_DIGITS = 32
const SHORT_ID_DIGITS = 16

class JsonWalk {
  private readonly scanner = new JsonScanner()
  private readonly numbers = new NumberReader(this.scanner)
  private readonly out = new GrowingBuffer()

  run(type: MessageType, body: Buffer): Buffer {
    const { scanner, out } = this
    scanner.reset(body)
    out.reset()
    // An empty body is an empty export, as in protobuf.
    if (scanner.peek() !== 0) {
      this.expectObject()
      this.readMessage(type, 1)
      if (scanner.peek() !== 0) throw INVALID_JSON
    }
    return out.bytes.subarray(0, out.length)
  }

  /** Lets go of the body. */
  release(): void {
    this.scanner.reset(NOTHING)
  }

  private expectObject(): void {
    const byte = this.scanner.peek()
    if (byte !== OPEN_OBJECT) throw wrongType(byte)
  }

  /** Writes the fields of the object at the scanner, which is the `depth`th one in another. */
  private readMessage(type: MessageType, depth: number): void {
    const scanner = this.scanner
    if (depth > MAX_JSON_DEPTH) throw JSON_TOO_DEEP
    scanner.pos++
    if (scanner.peek() === CLOSE_OBJECT) {
      scanner.pos++
      return
    }
    let expected = type.first
    let previous: Field | undefined
    do {
      const field = this.readKey(type, expected)
      if (field === undefined) {
        scanner.skipValue(depth)
        continue
      }
      if (field !== expected) {
        if (previous === undefined) type.first = field
        else previous.next = field
      }
      previous = field
      expected = field.next
      const byte = scanner.peek()
      if (byte === 0x6e) scanner.readNull()
      else if (field.repeated) this.readList(field, byte, depth + 1)
      else this.readValue(field, byte, depth)
    } while (scanner.another(CLOSE_OBJECT))
  }

  /** Reads a key and its colon. Undefined if it names no field of the message. */
  private readKey(type: MessageType, expected: Field): Field | undefined {
    const scanner = this.scanner
    if (scanner.peek() !== QUOTE) throw INVALID_JSON
    const start = scanner.pos + 1
    if (start + MAX_KEY_BYTES <= scanner.bytes.length) {
      let field: Field | undefined = expected
      if (!isKey(scanner.view, start, expected)) {
        field = type.byInitial[(scanner.bytes[start] as number) & 31]
        while (field !== undefined && !isKey(scanner.view, start, field)) field = field.alternative
      }
      if (field !== undefined) {
        scanner.pos = start + field.keyBytes
        return field
      }
    }
    return this.readUncommonKey(type)
  }

  /** A key that is unknown, has escapes, is followed by white space, or stands at the very end. */
  private readUncommonKey(type: MessageType): Field | undefined {
    const scanner = this.scanner
    scanner.readText()
    const { text, textStart, textEnd } = scanner
    scanner.expect(COLON)
    if (textStart === textEnd) return undefined
    let field = type.byInitial[(text[textStart] as number) & 31]
    while (field !== undefined && !isName(text, textStart, textEnd, field.name)) field = field.alternative
    return field
  }

  private readList(field: Field, first: number, depth: number): void {
    const scanner = this.scanner
    if (first !== OPEN_ARRAY) throw wrongType(first)
    if (depth > MAX_JSON_DEPTH) throw JSON_TOO_DEEP
    scanner.pos++
    if (scanner.peek() === CLOSE_ARRAY) {
      scanner.pos++
      return
    }
    if (field.kind === FieldKind.message || field.kind === FieldKind.string) {
      do this.readValue(field, scanner.peek(), depth)
      while (scanner.another(CLOSE_ARRAY))
      return
    }
    this.writeTag(field)
    const start = this.openLength(2)
    do this.readNumber(field)
    while (scanner.another(CLOSE_ARRAY))
    this.closeLength(start, 2)
  }

  /** Writes one value with its tag. `first` is its first byte, where the scanner is. */
  private readValue(field: Field, first: number, depth: number): void {
    switch (field.kind) {
      case FieldKind.message:
        if (first !== OPEN_OBJECT) throw wrongType(first)
        this.readEmbedded(field, field.message as MessageType, depth + 1)
        break
      case FieldKind.string:
        if (first !== QUOTE) throw wrongType(first)
        this.writeTag(field)
        this.scanner.pos = copyString(this.scanner.bytes, this.scanner.view, this.scanner.pos + 1, this.out)
        break
      case FieldKind.id:
        if (first !== QUOTE) throw wrongType(first)
        this.readId(field)
        break
      case FieldKind.bytes:
        if (first !== QUOTE) throw wrongType(first)
        this.readBytes(field)
        break
      case FieldKind.bool:
        this.readBool(field, first)
        break
      case FieldKind.enum:
        if (first === QUOTE) this.readEnumName(field)
        else {
          this.writeTag(field)
          this.readNumber(field)
        }
        break
      default:
        this.writeTag(field)
        this.readNumber(field)
    }
  }

  private readEmbedded(field: Field, type: MessageType, depth: number): void {
    this.writeTag(field)
    const lengthBytes = depth > DEEP ? DEEP_LENGTH_BYTES : type.lengthBytes
    const start = this.openLength(lengthBytes)
    this.readMessage(type, depth)
    this.closeLength(start, lengthBytes)
  }

  private readBool(field: Field, first: number): void {
    const isTrue = first === 0x74
    if (isTrue) this.scanner.readTrue()
    else if (first === 0x66) this.scanner.readFalse()
    else throw wrongType(first)
    this.writeTag(field)
    this.out.u8(isTrue ? 1 : 0)
  }

  /** A name that is not known is ignored with its field, like an unknown field. */
  private readEnumName(field: Field): void {
    const scanner = this.scanner
    scanner.readText()
    if (scanner.textEnd - scanner.textStart > MAX_ENUM_NAME_BYTES) return
    const number = field.numbers?.get(scanner.text.toString('latin1', scanner.textStart, scanner.textEnd))
    if (number === undefined) return
    this.writeTag(field)
    this.out.u8(number)
  }

  private readNumber(field: Field): void {
    const { out, numbers } = this
    if (field.kind === FieldKind.double) {
      const value = numbers.readDouble()
      out.reserve(8)
      out.view.setFloat64(out.length, value, true)
      out.length += 8
      return
    }
    numbers.readInteger(field.kind)
    const { low, high } = numbers
    switch (field.kind) {
      case FieldKind.fixed64:
      case FieldKind.sfixed64:
        out.u64(low, high)
        break
      case FieldKind.fixed32:
        out.u32(low)
        break
      case FieldKind.sint32:
        // ZigZag: the sign becomes the lowest bit.
        this.writeVarint(((low << 1) ^ (low >> 31)) >>> 0, 0)
        break
      default:
        this.writeVarint(low, high)
    }
  }

  private writeVarint(low: number, high: number): void {
    const out = this.out
    if (high === 0) {
      if (low < 0x80) out.u8(low)
      else out.varint(low)
      return
    }
    out.reserve(10)
    const bytes = out.bytes
    let at = out.length
    let lower = low
    let upper = high
    while (upper !== 0 || lower >= 0x80) {
      bytes[at++] = (lower & 0x7f) | 0x80
      lower = ((lower >>> 7) | (upper << 25)) >>> 0
      upper >>>= 7
    }
    bytes[at++] = lower
    out.length = at
  }

  private readId(field: Field): void {
    this.writeTag(field)
    const { bytes, pos } = this.scanner
    const digits = pos + 1
    if (digits + LONG_ID_DIGITS < bytes.length) {
      const count =
        bytes[digits + LONG_ID_DIGITS] === QUOTE
          ? LONG_ID_DIGITS
          : bytes[digits + SHORT_ID_DIGITS] === QUOTE
            ? SHORT_ID_DIGITS
            : 0
      if (count > 0 && this.writeHex(bytes, digits, digits + count)) {
        this.scanner.pos = digits + count + 1
        return
      }
    }
    this.readUncommonId()
  }

  /**
   * An id of another length, with escapes, or malformed. Of the last kind it is written as a single byte: the decoder
   * rejects that record for its id, and the others are stored.
   */
  private readUncommonId(): void {
    const scanner = this.scanner
    scanner.readText()
    if ((scanner.textEnd - scanner.textStart) % 2 === 0) {
      if (this.writeHex(scanner.text, scanner.textStart, scanner.textEnd)) return
    }
    this.out.u8(1)
    this.out.u8(0)
  }

  /** Writes a length and the bytes that an even number of hex digits make; false, and nothing, if they are not hex. */
  private writeHex(text: Buffer, start: number, end: number): boolean {
    const out = this.out
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

  private readBytes(field: Field): void {
    const { scanner, out } = this
    this.writeTag(field)
    scanner.readText()
    const size = scanner.textEnd - scanner.textStart
    // One byte of length where that is enough: the decoder's fast path wants it so.
    const lengthBytes = size < 0x80 ? 1 : 5
    const start = this.openLength(lengthBytes)
    out.reserve(size)
    const end = decodeBase64(scanner.text, scanner.textStart, scanner.textEnd, out.bytes, start)
    if (end < 0) throw INVALID_JSON_VALUE
    out.length = end
    writeLength(out, start, lengthBytes)
  }

  private writeTag(field: Field): void {
    const out = this.out
    out.reserve(TAG_AND_NUMBER_BYTES)
    out.view.setUint16(out.length, field.tag, true)
    out.length += field.tagBytes
  }

  /** Keeps room for a length; returns where the content begins. */
  private openLength(lengthBytes: number): number {
    const out = this.out
    out.reserve(TAG_AND_NUMBER_BYTES)
    out.length += lengthBytes
    return out.length
  }

  /**
   * Writes the length before the content that begins at `start`. Content that outgrew the room is moved: once per
   * message around it, so deeply nested ones get room enough for any length at once, which keeps the time linear.
   */
  private closeLength(start: number, lengthBytes: number): void {
    const out = this.out
    const size = out.length - start
    if (size >>> (7 * lengthBytes) === 0) {
      writeLength(out, start, lengthBytes)
      return
    }
    let needed = lengthBytes + 1
    while (size >>> (7 * needed) !== 0) needed++
    const shift = needed - lengthBytes
    out.reserve(shift)
    out.bytes.copyWithin(start + shift, start, out.length)
    out.length += shift
    writeLength(out, start + shift, needed)
  }
}

/** Whether the key at `start`, after its quote, is that of the field, with its closing quote and a colon. */
function isKey(view: DataView, start: number, field: Field): boolean {
  const words = field.keyWords
  const last = words.length - 1
  for (let i = 0; i < last; i++) if (view.getInt32(start + i * 4, true) !== words[i]) return false
  return (view.getInt32(start + last * 4, true) & field.keyLastMask) === words[last]
}

function isName(text: Buffer, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false
  for (let i = 0; i < name.length; i++) if (text[start + i] !== name.charCodeAt(i)) return false
  return true
}

/** What is wrong with a value that begins so where another type is wanted. */
function wrongType(first: number): JsonRefusal {
  return beginsValue(first) ? INVALID_JSON_VALUE : INVALID_JSON
}
