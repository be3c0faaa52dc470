import { RowsBudget } from '../../../clickhouse/native/rows-budget.ts'
import { EXPORT_DECOMPRESSED_BYTES } from '../../../schemas/http/limits.ts'
import { MAX_NESTING } from '../protobuf/any-value.ts'
import { UNREADABLE_RECORD } from '../protobuf/refusal.ts'
import { INVALID_JSON, INVALID_JSON_VALUE, NO_RECORDS } from './json-refusals.ts'
import { CLOSE_ARRAY, CLOSE_OBJECT, COLON, JsonScanner, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './json-scanner.ts'
import { type Field, FieldKind, MAX_KEY_BYTES, type MessageType } from './message-type.ts'
import { ProtobufWriter } from './protobuf-writer.ts'
import { ValueTranscoder } from './value-transcoder.ts'

/** First byte of `null`. */
const NULL = 0x6e
const NOTHING = Buffer.alloc(0)

/**
 * Depth from which every message gets room for any length. Content that outgrows the room for its length is moved once
 * for each enclosing message. Only nested values are deeper than this, and the larger room keeps their time linear.
 */
const DEEP = 24
const DEEP_LENGTH_BYTES = 4

/** Walks the objects and arrays of one body, and writes them as messages. */
export class JsonWalk {
  /** Values that do not fit their fields: in a record those of the record, else those outside of records so far. */
  misfits = 0

  private readonly scanner = new JsonScanner()
  private readonly writer = new ProtobufWriter()
  private readonly values = new ValueTranscoder(this.scanner, this.writer)
  private readonly budget = new RowsBudget([this.writer.out])
  private hasUnknownFields = false
  /** Arrays and maps around the value of an attribute. */
  private nesting = 0

  /** Returns the message of a body, a view that is valid until the next run. Throws a `JsonRefusal`. */
  run(type: MessageType, body: Buffer): Buffer {
    const { scanner } = this
    const { out } = this.writer
    scanner.reset(body)
    out.reset()
    this.misfits = 0
    this.hasUnknownFields = false
    this.nesting = 0
    this.budget.begin(EXPORT_DECOMPRESSED_BYTES, 0)
    const first = scanner.peek()
    // An empty body is an empty export, as in protobuf.
    if (first !== 0) {
      if (first !== OPEN_OBJECT) this.misfit()
      else this.readMessage(type, 1)
      if (scanner.peek() !== 0) throw INVALID_JSON
      if (out.length === 0 && this.misfits > 0) throw INVALID_JSON_VALUE
      if (out.length === 0 && this.hasUnknownFields) throw NO_RECORDS
    }
    return out.bytes.subarray(0, out.length)
  }

  /** Releases the body. */
  release(): void {
    this.scanner.reset(NOTHING)
  }

  /** Writes the fields of the object at the scanner. `depth` is the number of open objects and arrays, including it. */
  private readMessage(type: MessageType, depth: number): void {
    const { scanner, values } = this
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
        this.hasUnknownFields = true
        scanner.skipValue()
        continue
      }
      if (field !== expected) {
        if (previous === undefined) type.first = field
        else previous.next = field
      }
      previous = field
      expected = field.next
      const first = scanner.peek()
      if (first === NULL) scanner.readNull()
      else if (field.repeated) this.readList(type, field, first, depth + 1)
      else if (field.kind === FieldKind.message && type.text === undefined) this.readEmbedded(field, first, depth + 1)
      else if (!values.field(field, first)) this.readMisfit(type, field, first, depth)
    } while (scanner.another(CLOSE_OBJECT))
  }

  /** Reads a key and its colon. Returns undefined if the message has no such field. */
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

  /** Reads a key that is unknown, has escapes, is followed by white space, or is at the end of the input. */
  private readUncommonKey(type: MessageType): Field | undefined {
    const scanner = this.scanner
    scanner.readText()
    const { text, textStart, textEnd } = scanner
    scanner.expect(COLON)
    if (textStart === textEnd) return undefined
    let field = type.byInitial[(text[textStart] as number) & 31]
    while (field !== undefined && !hasName(text, textStart, textEnd, field)) field = field.alternative
    return field
  }

  private readList(type: MessageType, field: Field, first: number, depth: number): void {
    const { scanner, writer, values } = this
    if (first !== OPEN_ARRAY) {
      this.readMisfit(type, field, first, depth)
      return
    }
    scanner.pos++
    if (scanner.peek() === CLOSE_ARRAY) {
      scanner.pos++
    } else if (field.kind === FieldKind.message) {
      do this.readEmbedded(field, scanner.peek(), depth + 1)
      while (scanner.another(CLOSE_ARRAY))
    } else if (field.kind === FieldKind.string) {
      do this.readValue(field)
      while (scanner.another(CLOSE_ARRAY))
    } else {
      writer.tag(field)
      const start = writer.openLength(1)
      do if (!values.number(field)) this.misfit()
      while (scanner.another(CLOSE_ARRAY))
      writer.closeLength(start, 1)
    }
  }

  /** Reads a string of a list. */
  private readValue(field: Field): void {
    const first = this.scanner.peek()
    if (first === NULL) this.scanner.readNull()
    else if (!this.values.field(field, first)) this.misfit()
  }

  /** Reads a message. `depth` is the number of open objects and arrays, including it. */
  private readEmbedded(field: Field, first: number, depth: number): void {
    const { scanner, writer, misfits } = this
    const type = field.message as MessageType
    if (first !== OPEN_OBJECT) {
      this.readNoMessage(field, type, first)
      return
    }
    const { pos } = scanner
    const lengthBytes = depth > DEEP ? DEEP_LENGTH_BYTES : type.lengthBytes
    writer.tag(field)
    const start = writer.openLength(lengthBytes)
    this.readMessage(type, depth)
    if (this.misfits !== misfits) this.replaceMisfit(type, misfits, start, pos)
    writer.closeLength(start, lengthBytes)
  }

  /**
   * Replaces a message that has misfits, if its type can: the value of an attribute becomes its text, a record becomes one
   * that is rejected. `start` is the start of its content, `pos` that of its object, `misfits` the number before it.
   */
  private replaceMisfit(type: MessageType, misfits: number, start: number, pos: number): void {
    const { scanner, values } = this
    const { out } = this.writer
    if (type.text === undefined && !type.isRecord) return
    this.misfits = misfits
    out.length = start
    if (type.text === undefined) out.u32(UNREADABLE_RECORD)
    else {
      scanner.pos = pos
      values.text(type.text, OPEN_OBJECT)
    }
  }

  /** Reads what is not an object where a message belongs. A `null` in a list has nothing to keep, if it is not a record. */
  private readNoMessage(field: Field, type: MessageType, first: number): void {
    const { scanner, writer, values } = this
    if (type.text === undefined && !type.isRecord) {
      if (first === NULL) scanner.readNull()
      else this.misfit()
      return
    }
    writer.tag(field)
    const start = writer.openLength(DEEP_LENGTH_BYTES)
    if (type.text === undefined) {
      scanner.skipValue()
      writer.out.u32(UNREADABLE_RECORD)
    } else if (first === NULL) scanner.readNull()
    else values.text(type.text, first)
    writer.closeLength(start, DEEP_LENGTH_BYTES)
  }

  /**
   * Reads what is not a single value that fits: the array or map of a value, if the decoder reads it at this depth, or a
   * misfit, which becomes another member of the same oneof or is counted.
   */
  private readMisfit({ text }: MessageType, field: Field, first: number, depth: number): void {
    const { values } = this
    if (text !== undefined) {
      const isContainer = field.kind === FieldKind.message && first === OPEN_OBJECT
      if (!isContainer || this.nesting === MAX_NESTING) values.text(text, first)
      else {
        this.nesting++
        this.readEmbedded(field, first, depth + 1)
        this.nesting--
      }
    } else if (field.substitute === undefined || !values.field(field.substitute, first)) this.misfit()
  }

  /** Skips a value that does not fit. Refuses one that is not JSON. */
  private misfit(): void {
    this.scanner.skipValue()
    this.misfits++
  }
}

/** Returns whether the text at `start` is the key of the field, followed by its closing quote and a colon. */
function isKey(view: DataView, start: number, field: Field): boolean {
  const words = field.keyWords
  const last = words.length - 1
  for (let i = 0; i < last; i++) if (view.getInt32(start + i * 4, true) !== words[i]) return false
  return (view.getInt32(start + last * 4, true) & field.keyLastMask) === words[last]
}

/** Returns whether the text is the name of the field, in lowerCamelCase or as in the .proto file. */
function hasName(text: Buffer, start: number, end: number, field: Field): boolean {
  return isName(text, start, end, field.name) || isName(text, start, end, field.originalName)
}

function isName(text: Buffer, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false
  for (let i = 0; i < name.length; i++) if (text[start + i] !== name.charCodeAt(i)) return false
  return true
}
