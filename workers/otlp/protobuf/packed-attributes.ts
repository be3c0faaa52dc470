import { GrowingBuffer, MAX_LENGTH_BYTES } from '../../../clickhouse/native/growing-buffer.ts'
import { LowCardinality } from '../../../clickhouse/native/low-cardinality.ts'
import { endOfString, startOfString } from '../../../clickhouse/native/native-string.ts'
import {
  ESCAPE,
  ESCAPED_VALUE,
  ESCAPES_OF,
  FIRST_TYPE,
  SEPARATOR,
} from '../../../clickhouse/tables/packed-attributes.ts'
import { MIB } from '../../../schemas/units.ts'
import { appendAnyValue, readKeyValue, ValueType } from './any-value.ts'
import { BytesCache } from './bytes-cache.ts'
import { cutString, cutText } from './cut-text.ts'
import { appendRawInt64, doubleText } from './number-text.ts'
import { type AttributeTexts, PLACE_ATTRIBUTES, PLACE_TEXT_BYTES } from './place-attributes.ts'
import type { WireCursor } from './wire.ts'

/** Limit of the cached lists of keys. A batch with more lists writes some of them again. */
const CACHE_LIMIT_BYTES = 8 * MIB
/** Length of the longest key that is looked up as a text. */
const KEY_BYTES = 40
/** A loop over shorter texts is faster than a search by `Buffer`. */
const LOOP_SEARCH_BYTES = 24

/**
 * The attributes of records, one record after the other, as the columns `attribute_keys` and `attribute_values`
 * (clickhouse/tables/packed-attributes.ts). Values are written as they are read. Keys and types repeat from record to record, so
 * they are collected, and looked up as one list when the record ends.
 */
export class PackedAttributes {
  readonly keyLists = new LowCardinality()
  readonly values = new GrowingBuffer()
  /** Keys of the record, each as its length and its bytes, followed by the code of its type. */
  readonly keys = new GrowingBuffer()
  /** Code of the type of the last value. */
  type = 0
  /** Whether the last value is escaped. */
  isEscaped = false
  /** End of the last key in `keys`. */
  keyEnd = 0
  /** Start of the text of the last value in `values`, and its end. A separator follows it. */
  valueStart = 0
  valueEnd = 0
  /** Attributes of the record. */
  count = 0
  /** Start of the record in `values`: its length, once it has ended, and then its texts. */
  recordStart = 0
  /** Index of the list of keys of the record, once it has ended. */
  listIndex = 0
  private readonly lists = new BytesCache<number>(CACHE_LIMIT_BYTES)
  private readonly uncommon = new GrowingBuffer()

  constructor() {
    const { uncommon, values } = this
    uncommon.budget = { check: moreBytes => values.budget?.check(uncommon.length + moreBytes) }
  }

  /** Forgets the indexes of lists. Must be called whenever the dictionary loses keys. */
  clearCache(): void {
    this.lists.clear()
  }

  /** Begins a record. */
  begin(): void {
    this.count = 0
    if (this.keys.length > 0) this.keys.reset()
    this.recordStart = this.values.beginString()
  }

  /** Ends the record. Positions in `values` are invalid afterwards. */
  end(): void {
    const { values, keyLists } = this
    if (this.count === 0) {
      values.truncate(this.recordStart)
      values.u8(0)
      keyLists.fill(0, 1)
      this.listIndex = 0
      return
    }
    values.truncate(values.length - 1)
    values.endString(this.recordStart)
    const { bytes, view, length } = this.keys
    let index = this.lists.get(view, 0, length)
    if (index === undefined) {
      index = this.writeList()
      this.lists.set(bytes, view, 0, length, index)
    }
    keyLists.fill(index, 1)
    this.listIndex = index
  }

  /** Removes the record. */
  discard(): void {
    this.values.truncate(this.recordStart)
  }

  /**
   * Returns the texts of the attributes of the record that state a place, before its end. The last value of a repeated key counts,
   * and an escaped one, which has a zero byte, is empty. Only records with an exception are read for it.
   */
  placeTexts(): AttributeTexts {
    const { keys, values, count } = this
    const texts = new Map<string, string>()
    let start = this.recordStart + MAX_LENGTH_BYTES
    for (let i = 0, at = 0; i < count; i++) {
      const keyStart = startOfString(keys.bytes, at)
      const keyEnd = endOfString(keys.bytes, at)
      const type = keys.bytes[keyEnd] as number
      at = keyEnd + 1
      const end = firstSeparator(values.bytes, start)
      const key = keyEnd - keyStart <= KEY_BYTES ? keys.bytes.toString('latin1', keyStart, keyEnd) : ''
      if (PLACE_ATTRIBUTES.has(key)) texts.set(key, this.placeText(type, start, end))
      start = end + 1
    }
    return texts
  }

  /** Returns a text, an int, or a short array as JSON. Other values have no text. */
  private placeText(type: number, start: number, end: number): string {
    const isCounted = type === ValueType.string || type === ValueType.int
    if (!isCounted && !(type === ValueType.array && end - start <= PLACE_TEXT_BYTES)) return ''
    return cutString(cutText(this.values.bytes, start, end, PLACE_TEXT_BYTES), PLACE_TEXT_BYTES)
  }

  /**
   * Appends the KeyValue message `[start, end)` and returns the length of its key. Every SDK writes the key, then the
   * value, then nothing, mostly with lengths below 128, which a fast path reads.
   */
  append(wire: WireCursor, start: number, end: number): number {
    const bytes = wire.bytes
    this.count++
    if (end - start >= 4 && bytes[start] === 0x0a) {
      const keyLength = bytes[start + 1] as number
      const valueTag = start + 2 + keyLength
      if (keyLength < 0x80 && valueTag + 2 < end && bytes[valueTag] === 0x12) {
        const valueStart = valueTag + 2
        if (wire.scrubber?.mayMatch(bytes, start + 2, valueTag)) return this.appendUncommon(wire, start, end)
        if (valueStart + (bytes[valueTag + 1] as number) === end && (bytes[valueTag + 1] as number) < 0x80) {
          this.keys.raw(bytes, wire.view, start + 1, valueTag)
          this.keyEnd = this.keys.length
          this.appendShortValue(wire, valueStart, end)
          return keyLength
        }
      }
    }
    return this.appendUncommon(wire, start, end)
  }

  private appendUncommon(wire: WireCursor, start: number, end: number): number {
    const pair = readKeyValue(wire, start, end)
    this.keys.string(wire.bytes, wire.view, pair.keyStart, pair.keyEnd)
    this.keyEnd = this.keys.length
    this.appendUncommonValue(pair.value, pair.valueStart, pair.valueEnd)
    return pair.keyEnd - pair.keyStart
  }

  /** Appends an AnyValue of 1 to 127 bytes. */
  private appendShortValue(wire: WireCursor, start: number, end: number): void {
    const { bytes } = wire
    const { values } = this
    const first = bytes[start + 1] as number
    switch (bytes[start]) {
      case 0x0a:
        if (start + 2 + first !== end) break
        this.valueStart = values.length
        values.raw(bytes, wire.view, start + 2, end)
        this.endText(ValueType.string)
        return
      case 0x18:
        if (first < 0x80) {
          if (start + 2 !== end) break
          this.valueStart = values.length
          appendRawInt64(values, first, 0)
        } else {
          wire.readVarint(start + 1, end)
          if (wire.next !== end) break
          this.valueStart = values.length
          appendRawInt64(values, wire.low, wire.high)
        }
        this.endValue(ValueType.int)
        return
      case 0x10:
        if (first >= 0x80 || start + 2 !== end) break
        this.valueStart = values.length
        values.rawText(first !== 0 ? 'true' : 'false')
        this.endValue(ValueType.bool)
        return
      case 0x21:
        if (start + 9 !== end) break
        this.valueStart = values.length
        values.rawText(doubleText(wire.view.getFloat64(start + 1, true)))
        this.endValue(ValueType.double)
        return
    }
    this.appendUncommonValue(wire, start, end)
  }

  private appendUncommonValue(wire: WireCursor, start: number, end: number): void {
    const { uncommon, values } = this
    // A payload that was refused within a value has left its beginning.
    uncommon.reset()
    const type = appendAnyValue(uncommon, wire, start, end)
    this.valueStart = values.length
    values.raw(uncommon.bytes, uncommon.view, startOfString(uncommon.bytes, 0), uncommon.length)
    if (type === ValueType.string) this.endText(type)
    else this.endValue(type)
  }

  /** Ends a value that may have any bytes. */
  private endText(type: number): void {
    const { values, valueStart } = this
    const end = values.length
    this.endValue(type)
    // The separator ends the search.
    if (firstSeparator(values.bytes, valueStart) !== end) this.escape(type, end)
  }

  /** Ends a value without separators. */
  private endValue(type: number): void {
    this.valueEnd = this.values.length
    this.values.u8(SEPARATOR)
    this.type = type
    this.isEscaped = false
    this.keys.u8(type)
  }

  /** Writes the last value again, escaped. `valueStart` and `valueEnd` are those of the escaped text. */
  private escape(type: number, end: number): void {
    const { values, valueStart, keys } = this
    const text = Buffer.from(values.bytes.subarray(valueStart, end))
    values.truncate(valueStart)
    appendEscaped(values, text, 0, text.length)
    this.valueEnd = values.length
    values.u8(SEPARATOR)
    keys.truncate(keys.length - 1)
    keys.u8(type | ESCAPED_VALUE)
    this.isEscaped = true
  }

  /** Writes the list of the record to the dictionary and returns its index. */
  private writeList(): number {
    const { keys, count } = this
    const { dictionary } = this.keyLists
    dictionary.beginKey()
    const list = dictionary.keys
    for (let i = 0, at = 0; i < count; i++) {
      at = endOfString(keys.bytes, at)
      list.u8(FIRST_TYPE + (keys.bytes[at++] as number))
    }
    list.u8(SEPARATOR)
    for (let i = 0, at = 0; i < count; i++) {
      const end = endOfString(keys.bytes, at)
      appendEscaped(list, keys.bytes, startOfString(keys.bytes, at), end)
      list.u8(SEPARATOR)
      at = end + 1
    }
    return dictionary.endKey()
  }
}

/** Returns the position of the first separator at or after `start`. There is one. */
function firstSeparator(bytes: Buffer, start: number): number {
  for (let at = start; at < start + LOOP_SEARCH_BYTES; at++) if (bytes[at] === SEPARATOR) return at
  return bytes.indexOf(SEPARATOR, start + LOOP_SEARCH_BYTES)
}

function appendEscaped(target: GrowingBuffer, bytes: Buffer, start: number, end: number): void {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number
    const code = ESCAPES_OF[byte]
    if (code === undefined) target.u8(byte)
    else {
      target.u8(ESCAPE)
      target.u8(code)
    }
  }
}

/** Returns the bytes of an escaped value. */
export function unescaped(bytes: Uint8Array): Buffer {
  const text: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    text.push(byte === ESCAPE ? ESCAPES_OF.indexOf(bytes[++at]) : byte)
  }
  return Buffer.from(text)
}
