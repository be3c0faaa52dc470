import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import type { Scrubber } from '../../../shared/scrubbing/scrubber.ts'
import { cutString, cutText, endOfCut } from './cut-text.ts'
import { appendInt64, appendRawInt64, doubleJson, doubleText } from './number-text.ts'
import { MessagePieces, WireCursor } from './wire.ts'

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

/**
 * Largest depth of arrays and maps. Deeper ones are kept as base64 of their messages, because their readers recurse.
 * Protobuf's own parsers stop at a hundred messages, about fifty arrays.
 */
export const MAX_NESTING = 64

const TRUE = Buffer.from('\x04true')
const FALSE = Buffer.from('\x05false')
const TRUE_VIEW = new DataView(TRUE.buffer, TRUE.byteOffset, TRUE.length)
const FALSE_VIEW = new DataView(FALSE.buffer, FALSE.byteOffset, FALSE.length)

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
    case BYTES_TAG: {
      const at = target.beginString()
      writeBase64(target, member)
      target.endString(at)
      return ValueType.bytes
    }
    case ARRAY_TAG:
    case KVLIST_TAG: {
      const at = target.beginString()
      writeMember(target, member, 0)
      target.endString(at)
      return member.tag === ARRAY_TAG ? ValueType.array : ValueType.kvlist
    }
    default:
      target.u8(0)
      return ValueType.empty
  }
}

/** Appends a bool as a String value. */
function appendBool(target: GrowingBuffer, value: boolean): void {
  if (value) target.raw(TRUE, TRUE_VIEW, 0, TRUE.length)
  else target.raw(FALSE, FALSE_VIEW, 0, FALSE.length)
}

/** Returns the text of the AnyValue message `[start, end)` if it is a string, cut to `limitBytes`, or an int, else ''. */
export function promotedText(wire: WireCursor, start: number, end: number, limitBytes: number): string {
  const member = selectMember(wire, start, end)
  if (member.tag === INT_TAG) return String(BigInt.asIntN(64, (BigInt(member.high) << 32n) | BigInt(member.low)))
  if (member.tag !== STRING_TAG) return ''
  // Invalid bytes become longer characters, so the text is cut once more.
  return cutString(cutText(member.wire.bytes, member.start, member.end, limitBytes), limitBytes)
}

/** Runs a function that reads values a second time: what it replaces is counted already. */
export function uncounted<T>({ scrubber }: WireCursor, read: () => T): T {
  return scrubber === undefined ? read() : scrubber.counts.uncounted(read)
}

/** Returns the text of an AnyValue as `promotedText` does, and an array as JSON if that has at most `limitBytes`, else ''. */
export function placeText(wire: WireCursor, start: number, end: number, limitBytes: number): string {
  const member = selectMember(wire, start, end)
  if (member.tag !== ARRAY_TAG) return promotedText(wire, start, end, limitBytes)
  // An array of doubles is shorter as JSON, by less than this.
  if (member.end - member.start > 8 * limitBytes) return ''
  const json = new GrowingBuffer()
  uncounted(wire, () => writeMember(json, member, 0))
  return json.length > limitBytes ? '' : json.bytes.toString('utf8', 0, json.length)
}

/** Returns the text of an AnyValue as `promotedText` does, and that of a bool or a double as it is stored. */
export function scalarText(wire: WireCursor, start: number, end: number, limitBytes: number): string {
  const member = selectMember(wire, start, end)
  if (member.tag === BOOL_TAG) return member.low !== 0 || member.high !== 0 ? 'true' : 'false'
  if (member.tag === DOUBLE_TAG) return doubleText(member.wire.view.getFloat64(member.start, true))
  return promotedText(wire, start, end, limitBytes)
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
    case ARRAY_TAG:
      if (depth < MAX_NESTING) writeArray(out, member.wire, member.start, member.end, depth + 1)
      else writeBase64Json(out, member)
      break
    case KVLIST_TAG:
      if (depth < MAX_NESTING) writeKeyValueList(out, member.wire, member.start, member.end, depth + 1)
      else writeBase64Json(out, member)
      break
    case BYTES_TAG:
      writeBase64Json(out, member)
      break
    default:
      out.rawText('null')
  }
}

/** ArrayValue: `repeated AnyValue values = 1`. */
function writeArray(out: GrowingBuffer, wire: WireCursor, start: number, end: number, depth: number): void {
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
  out.u8(0x7b)
  let separate = false
  for (let pos = start; pos < end; ) {
    const tag = wire.readField(pos, end)
    pos = wire.next
    if (tag !== 0x0a) continue
    if (separate) out.u8(0x2c)
    separate = true
    writeJsonPair(out, wire, readKeyValue(wire, wire.start, pos), depth)
  }
  out.u8(0x7d)
}

/**
 * Writes a key and its value as JSON: exact ints, base64 for bytes, `null` for an empty value. `wire` has the key, `depth`
 * is the number of arrays and maps around the pair.
 */
export function writeJsonPair(out: GrowingBuffer, wire: WireCursor, pair: KeyValue, depth: number): void {
  writeJsonString(out, wire.bytes, pair.keyStart, pair.keyEnd)
  out.u8(0x3a)
  writeMember(out, selectMember(pair.value, pair.valueStart, pair.valueEnd), depth)
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

/**
 * Reads a KeyValue: `string key = 1; AnyValue value = 2`, in any order and any number of pieces. The value is scrubbed if the key
 * matches a rule: every attribute is read here, nested ones and those of log bodies included, but for those that the fast path of
 * `PackedAttributes` reads.
 */
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
  if (wire.scrubber?.mayMatch(wire.bytes, pair.keyStart, pair.keyEnd)) scrub(pair, wire.scrubber, wire.bytes)
  return pair
}

/** Returns the bytes of a text, so that it has the same hash in every format, and those of the message of another value. */
function bytesOf({ value, valueStart, valueEnd }: KeyValue): Uint8Array {
  const member = selectMember(value, valueStart, valueEnd)
  const isText = member.tag === STRING_TAG
  return isText ? member.wire.bytes.subarray(member.start, member.end) : value.bytes.subarray(valueStart, valueEnd)
}

/** Replaces a value if its key matches a rule. */
function scrub(pair: KeyValue, scrubber: Scrubber, bytes: Buffer): void {
  const rule = scrubber.ruleOfBytes(bytes, pair.keyStart, pair.keyEnd)
  if (rule === undefined) return
  // A value that is not kept must be well-formed nevertheless.
  pair.value.checkFraming(pair.valueStart, pair.valueEnd)
  const replaced = Buffer.from(scrubber.replace(rule, () => bytesOf(pair)) ?? '')
  // No text is longer than a hash, so that its length is one byte.
  pair.value = new WireCursor(Buffer.concat([Buffer.from([STRING_TAG, replaced.length]), replaced]))
  pair.valueStart = replaced.length === 0 ? 2 : 0
  pair.valueEnd = replaced.length + 2
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Longer texts are written in pieces, so that no copy of a whole text of tens of megabytes is made. A multiple of 3. */
const PIECE_BYTES = 48 * 1024

function writeBase64Json(out: GrowingBuffer, member: Member): void {
  out.u8(QUOTE)
  writeBase64(out, member)
  out.u8(QUOTE)
}

function writeBase64(out: GrowingBuffer, { wire, start, end }: Member): void {
  out.reserve(Math.ceil((end - start) / 3) * 4)
  for (let at = start; at < end; at += PIECE_BYTES) {
    out.rawText(wire.bytes.toString('base64', at, Math.min(at + PIECE_BYTES, end)))
  }
}

/**
 * Writes a JSON string. Plain ASCII is copied. JSON.stringify writes other text and replaces invalid UTF-8 (U+FFFD).
 */
function writeJsonString(out: GrowingBuffer, bytes: Buffer, start: number, end: number): void {
  out.reserve(end - start + 2)
  out.u8(QUOTE)
  for (let at = start; at < end; ) {
    const cut = endOfCut(bytes, at, end, PIECE_BYTES)
    // A piece without a single character boundary has only bytes that are replaced one by one.
    const pieceEnd = cut > at ? cut : at + PIECE_BYTES
    writeJsonPiece(out, bytes, at, pieceEnd)
    at = pieceEnd
  }
  out.u8(QUOTE)
}

function writeJsonPiece(out: GrowingBuffer, bytes: Buffer, start: number, end: number): void {
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number
    if (byte < 0x20 || byte > 0x7e || byte === QUOTE || byte === BACKSLASH) {
      out.rawText(JSON.stringify(bytes.toString('utf8', start, end)).slice(1, -1))
      return
    }
  }
  out.reserve(end - start)
  out.length += bytes.copy(out.bytes, out.length, start, end)
}
