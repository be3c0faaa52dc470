import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { appendInt64, appendRawInt64, doubleJson, doubleText } from './number-text.ts'
import { NESTING_TOO_DEEP } from './refusal.ts'
import { MessagePieces, type WireCursor } from './wire.ts'

/** Codes of `attribute_types`. They equal the field numbers of the members of AnyValue. */
export const ValueType = {
  empty: 0,
  string: 1,
  bool: 2,
  int: 3,
  double: 4,
  array: 5,
  kvlist: 6,
  bytes: 7,
} as const

/** Tags of the members of AnyValue. A member with another wire type is an unknown field. */
const STRING_TAG = 0x0a
const BOOL_TAG = 0x10
const INT_TAG = 0x18
const DOUBLE_TAG = 0x21
const ARRAY_TAG = 0x2a
const KVLIST_TAG = 0x32
const BYTES_TAG = 0x3a

/** Largest depth of arrays and maps. Protobuf's own parsers stop at a hundred messages, about fifty arrays. */
export const MAX_NESTING = 64

const TRUE = Buffer.from('\x04true')
const FALSE = Buffer.from('\x05false')
const TRUE_VIEW = new DataView(TRUE.buffer, TRUE.byteOffset, TRUE.length)
const FALSE_VIEW = new DataView(FALSE.buffer, FALSE.byteOffset, FALSE.length)

/** Buffer for JSON text, whose length must be written before it. Only one value uses it at a time. */
const scratch = new GrowingBuffer()

/** Appends the AnyValue message `[start, end)` as a String value and returns its type code. */
export function appendAnyValue(target: GrowingBuffer, wire: WireCursor, start: number, end: number): number {
  const member = selectMember(wire, start, end)
  switch (member.tag) {
    case STRING_TAG:
      target.string(member.wire.bytes, member.wire.view, member.start, member.end)
      return ValueType.string
    case BOOL_TAG:
      appendBool(target, member.low !== 0 || member.high !== 0)
      return ValueType.bool
    case INT_TAG:
      appendInt64(target, member.low, member.high)
      return ValueType.int
    case DOUBLE_TAG:
      target.text(doubleText(member.wire.view.getFloat64(member.start, true)))
      return ValueType.double
    case BYTES_TAG:
      target.text(member.wire.bytes.toString('base64', member.start, member.end))
      return ValueType.bytes
    case ARRAY_TAG:
    case KVLIST_TAG:
      scratch.reset()
      writeMember(scratch, member, 0)
      target.string(scratch.bytes, scratch.view, 0, scratch.length)
      return member.tag === ARRAY_TAG ? ValueType.array : ValueType.kvlist
    default:
      target.u8(0)
      return ValueType.empty
  }
}

/** Appends a bool as a String value. */
export function appendBool(target: GrowingBuffer, value: boolean): void {
  if (value) target.raw(TRUE, TRUE_VIEW, 0, TRUE.length)
  else target.raw(FALSE, FALSE_VIEW, 0, FALSE.length)
}

/** An attribute value as JSON. */
export interface JsonValue {
  json: string
  /** Text for promoted columns: the text of a string or an int, else ''. */
  text: string
}

/** Converts the AnyValue message `[start, end)` to JSON: exact ints, base64 for bytes, `null` for an empty value. */
export function jsonOfAnyValue(wire: WireCursor, start: number, end: number): JsonValue {
  const member = selectMember(wire, start, end)
  scratch.reset()
  writeMember(scratch, member, 0)
  const json = scratch.bytes.toString('utf8', 0, scratch.length)
  if (member.tag === STRING_TAG) return { json, text: JSON.parse(json) }
  return { json, text: member.tag === INT_TAG ? json : '' }
}

/** The member of a oneof that is set, and the location of its bytes. `tag` is 0 if none is set. */
interface Member {
  tag: number
  wire: WireCursor
  start: number
  end: number
  low: number
  high: number
}

/** Selects the last of several members. A message is merged with the members of its kind directly before it. */
function selectMember(wire: WireCursor, start: number, end: number): Member {
  const member: Member = { tag: 0, wire, start: end, end, low: 0, high: 0 }
  let pieces: MessagePieces | undefined
  for (let pos = start; pos < end; ) {
    const tag = wire.readField(pos, end)
    const fieldStart = wire.start
    pos = wire.next
    if (!isMember(tag)) continue
    if (tag === member.tag && (tag === ARRAY_TAG || tag === KVLIST_TAG)) {
      pieces ??= new MessagePieces(wire, member.start, member.end)
      pieces.add(wire, fieldStart, pos)
    } else {
      pieces = undefined
      member.tag = tag
      member.low = wire.low
      member.high = wire.high
    }
    member.start = fieldStart
    member.end = pos
  }
  if (pieces !== undefined) {
    member.wire = pieces.merged()
    member.start = 0
    member.end = member.wire.bytes.length
  }
  return member
}

function isMember(tag: number): boolean {
  switch (tag) {
    case STRING_TAG:
    case BOOL_TAG:
    case INT_TAG:
    case DOUBLE_TAG:
    case ARRAY_TAG:
    case KVLIST_TAG:
    case BYTES_TAG:
      return true
    default:
      return false
  }
}

function writeMember(out: GrowingBuffer, member: Member, depth: number): void {
  switch (member.tag) {
    case STRING_TAG:
      writeJsonString(out, member.wire.bytes, member.start, member.end)
      break
    case BOOL_TAG:
      out.rawText(member.low !== 0 || member.high !== 0 ? 'true' : 'false')
      break
    case INT_TAG:
      appendRawInt64(out, member.low, member.high)
      break
    case DOUBLE_TAG:
      out.rawText(doubleJson(member.wire.view.getFloat64(member.start, true)))
      break
    case BYTES_TAG:
      out.rawText(`"${member.wire.bytes.toString('base64', member.start, member.end)}"`)
      break
    case ARRAY_TAG:
      writeArray(out, member.wire, member.start, member.end, depth + 1)
      break
    case KVLIST_TAG:
      writeKeyValueList(out, member.wire, member.start, member.end, depth + 1)
      break
    default:
      out.rawText('null')
  }
}

/** ArrayValue: `repeated AnyValue values = 1`. */
function writeArray(out: GrowingBuffer, wire: WireCursor, start: number, end: number, depth: number): void {
  if (depth > MAX_NESTING) throw NESTING_TOO_DEEP
  out.u8(0x5b)
  let separate = false
  for (let pos = start; pos < end; ) {
    const tag = wire.readField(pos, end)
    pos = wire.next
    if (tag !== 0x0a) continue
    if (separate) out.u8(0x2c)
    separate = true
    writeMember(out, selectMember(wire, wire.start, pos), depth)
  }
  out.u8(0x5d)
}

/** KeyValueList: `repeated KeyValue values = 1`. Repeated keys are all written. */
function writeKeyValueList(out: GrowingBuffer, wire: WireCursor, start: number, end: number, depth: number): void {
  if (depth > MAX_NESTING) throw NESTING_TOO_DEEP
  out.u8(0x7b)
  let separate = false
  for (let pos = start; pos < end; ) {
    const tag = wire.readField(pos, end)
    pos = wire.next
    if (tag !== 0x0a) continue
    if (separate) out.u8(0x2c)
    separate = true
    const pair = readKeyValue(wire, wire.start, pos)
    writeJsonString(out, wire.bytes, pair.keyStart, pair.keyEnd)
    out.u8(0x3a)
    writeMember(out, selectMember(pair.value, pair.valueStart, pair.valueEnd), depth)
  }
  out.u8(0x7d)
}

/** Positions of a key and its value. */
export interface KeyValue {
  keyStart: number
  keyEnd: number
  /** Cursor over the value. It is another one if the value came in pieces. */
  value: WireCursor
  valueStart: number
  valueEnd: number
}

/** Reads a KeyValue: `string key = 1; AnyValue value = 2`, in any order and any number of pieces. */
export function readKeyValue(wire: WireCursor, start: number, end: number): KeyValue {
  const pair: KeyValue = { keyStart: end, keyEnd: end, value: wire, valueStart: end, valueEnd: end }
  let pieces: MessagePieces | undefined
  let hasValue = false
  for (let pos = start; pos < end; ) {
    const tag = wire.readField(pos, end)
    const fieldStart = wire.start
    pos = wire.next
    if (tag === 0x0a) {
      pair.keyStart = fieldStart
      pair.keyEnd = pos
    } else if (tag === 0x12) {
      if (hasValue) {
        pieces ??= new MessagePieces(wire, pair.valueStart, pair.valueEnd)
        pieces.add(wire, fieldStart, pos)
      }
      hasValue = true
      pair.valueStart = fieldStart
      pair.valueEnd = pos
    }
  }
  if (pieces !== undefined) {
    pair.value = pieces.merged()
    pair.valueStart = 0
    pair.valueEnd = pair.value.bytes.length
  }
  return pair
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Writes a JSON string. Plain ASCII is copied. JSON.stringify writes other text and replaces invalid UTF-8 (U+FFFD).
 */
function writeJsonString(out: GrowingBuffer, bytes: Buffer, start: number, end: number): void {
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number
    if (byte < 0x20 || byte > 0x7e || byte === QUOTE || byte === BACKSLASH) {
      out.rawText(JSON.stringify(bytes.toString('utf8', start, end)))
      return
    }
  }
  out.reserve(end - start + 2)
  out.u8(QUOTE)
  out.length += bytes.copy(out.bytes, out.length, start, end)
  out.u8(QUOTE)
}
