import { RowsTooLarge } from '../../../clickhouse/native/growing-buffer.ts'
import { RowsBudget } from '../../../clickhouse/native/rows-budget.ts'
import { EXPORT_DECOMPRESSED_BYTES } from '../../../schemas/http/limits.ts'
import type { Signal } from '../../../schemas/queues/names.ts'
import { requestColumnBytes } from '../../sink/job-limits.ts'
import type { RowBatch } from '../../sink/row-batch.ts'
import { INVALID_JSON, JSON_TOO_DEEP, JsonRefusal, type JsonRefusalReason } from './json-refusals.ts'
import {
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
import { type Field, FieldKind, MAX_KEY_BYTES, type MessageType } from './message-type.ts'
import { ProtobufWriter } from './protobuf-writer.ts'
import { ValueTranscoder, wrongType } from './value-transcoder.ts'

/** The rewritten message, or the reason why the payload is refused. */
type TranscodeResult =
  | {
      ok: true
      /** A view that is valid until the next call. */
      message: Buffer
    }
  | { ok: false; reason: JsonRefusalReason }

/** Rewrites OTLP/JSON as OTLP/protobuf. */
interface JsonTranscoder {
  /** Returns the Export…ServiceRequest of an OTLP/JSON body as protobuf. Never throws for bad input. */
  transcode(otlpSignal: keyof typeof REQUEST_TYPES, body: Buffer): TranscodeResult
}

/**
 * Creates a transcoder from OTLP/JSON to OTLP/protobuf. It makes one pass over the bytes, without an object per value.
 * The mapping is protobuf's JSON mapping with the exceptions of OTLP (OTLP specification, "JSON Protobuf Encoding"):
 * hex ids, integer enums (names are accepted), lowerCamelCase keys only, unknown fields ignored. `null` is an absent
 * field but is invalid in an array. If a key repeats, the last value counts, messages are merged and arrays are
 * concatenated.
 */
export function createJsonTranscoder(): JsonTranscoder {
  const walk = new JsonWalk()
  return {
    transcode(otlpSignal, body) {
      try {
        return { ok: true, message: walk.run(REQUEST_TYPES[otlpSignal], body) }
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

/**
 * Wraps a batch so that it accepts both encodings. JSON is first rewritten as protobuf, so there is one decoder and
 * both encodings give the same rows.
 */
export function acceptJson(otlpSignal: Signal, rows: RowBatch, transcoder: JsonTranscoder): RowBatch {
  return {
    get rows() {
      return rows.rows
    },
    get derivedRows() {
      return rows.derivedRows ?? 0
    },
    get bytes() {
      return rows.bytes
    },
    get capacityBytes() {
      return rows.capacityBytes
    },
    append(frame, body, limitBytes = requestColumnBytes(body.length)) {
      if (frame.contentType !== 'application/json') return rows.append(frame, body, limitBytes)
      const transcoded = transcoder.transcode(otlpSignal, body)
      return transcoded.ok ? rows.append(frame, transcoded.message, limitBytes) : transcoded
    },
    markJob: () => rows.markJob(),
    rewindJob: () => rows.rewindJob(),
    tables: () => rows.tables(),
    stackRequests: () => rows.stackRequests?.() ?? [],
    finished: leftOut => rows.finished?.(leftOut),
    reset: () => rows.reset(),
    shrink: () => rows.shrink(),
  }
}

const NOTHING = Buffer.alloc(0)

/**
 * Depth from which every message gets room for any length. Content that outgrows the room for its length is moved once
 * for each enclosing message. Only nested values are deeper than this, and the larger room keeps their time linear.
 */
const DEEP = 24
const DEEP_LENGTH_BYTES = 4

class JsonWalk {
  private readonly scanner = new JsonScanner()
  private readonly writer = new ProtobufWriter()
  private readonly values = new ValueTranscoder(this.scanner, this.writer)
  private readonly budget = new RowsBudget([this.writer.out])

  run(type: MessageType, body: Buffer): Buffer {
    const { scanner } = this
    const { out } = this.writer
    scanner.reset(body)
    out.reset()
    this.budget.begin(EXPORT_DECOMPRESSED_BYTES, 0)
    const first = scanner.peek()
    // An empty body is an empty export, as in protobuf.
    if (first !== 0) {
      if (first !== OPEN_OBJECT) throw wrongType(first)
      this.readMessage(type, 1)
      if (scanner.peek() !== 0) throw INVALID_JSON
    }
    return out.bytes.subarray(0, out.length)
  }

  /** Releases the body. */
  release(): void {
    this.scanner.reset(NOTHING)
  }

  /** Writes the fields of the object at the scanner. `depth` is the number of open objects and arrays, including it. */
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
      const first = scanner.peek()
      if (first === 0x6e) scanner.readNull()
      else if (field.repeated) this.readList(field, first, depth + 1)
      else if (field.kind === FieldKind.message) this.readEmbedded(field, first, depth + 1)
      else this.values.field(field, first)
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
    while (field !== undefined && !isName(text, textStart, textEnd, field.name)) field = field.alternative
    return field
  }

  private readList(field: Field, first: number, depth: number): void {
    const { scanner, writer, values } = this
    if (first !== OPEN_ARRAY) throw wrongType(first)
    if (depth > MAX_JSON_DEPTH) throw JSON_TOO_DEEP
    scanner.pos++
    if (scanner.peek() === CLOSE_ARRAY) {
      scanner.pos++
    } else if (field.kind === FieldKind.message) {
      do this.readEmbedded(field, scanner.peek(), depth + 1)
      while (scanner.another(CLOSE_ARRAY))
    } else if (field.kind === FieldKind.string) {
      do values.field(field, scanner.peek())
      while (scanner.another(CLOSE_ARRAY))
    } else {
      writer.tag(field)
      const start = writer.openLength(1)
      do values.number(field)
      while (scanner.another(CLOSE_ARRAY))
      writer.closeLength(start, 1)
    }
  }

  private readEmbedded(field: Field, first: number, depth: number): void {
    if (first !== OPEN_OBJECT) throw wrongType(first)
    const { writer } = this
    const type = field.message as MessageType
    const lengthBytes = depth > DEEP ? DEEP_LENGTH_BYTES : type.lengthBytes
    writer.tag(field)
    const start = writer.openLength(lengthBytes)
    this.readMessage(type, depth)
    writer.closeLength(start, lengthBytes)
  }
}

/** Returns whether the text at `start` is the key of the field, followed by its closing quote and a colon. */
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
