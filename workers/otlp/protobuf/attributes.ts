import { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { startOfString } from '../../../clickhouse/native/native-string.ts'
import { appendAnyValue, readKeyValue } from './any-value.ts'
import type { WireCursor } from './wire.ts'

/**
 * Attributes of one event, link, exemplar or exception, of which a request has few: the keys, the texts of the values, and the
 * codes of their types. Those of spans, log records and points are `PackedAttributes`.
 */
export class Attributes {
  readonly keys = new GrowingBuffer()
  readonly values = new GrowingBuffer()
  readonly types = new GrowingBuffer()
  /** Start of the text of the last value in `values`. It ends at `values.length`. */
  valueStart = 0

  /** `column` is a column of the table for which they are read. They may take as much memory as it may. */
  constructor(column: GrowingBuffer) {
    const budget = { check: (moreBytes: number) => column.budget?.check(this.values.length + moreBytes) }
    for (const buffer of [this.keys, this.values, this.types]) buffer.budget = budget
  }

  /** Number of attributes. Each has one byte of type. */
  get count(): number {
    return this.types.length
  }

  /** Removes all attributes. */
  reset(): void {
    for (const buffer of [this.keys, this.values, this.types]) if (buffer.length > 0) buffer.reset()
  }

  /** Writes the attributes in the form of the columns `details` (clickhouse/tables/span-details.ts). */
  writeTo(target: GrowingBuffer): void {
    const { types, keys, values } = this
    target.varint(types.length)
    target.raw(types.bytes, types.view, 0, types.length)
    target.raw(keys.bytes, keys.view, 0, keys.length)
    target.raw(values.bytes, values.view, 0, values.length)
  }

  /** Appends the KeyValue message `[start, end)` and returns the length of its key. */
  append(wire: WireCursor, start: number, end: number): number {
    const { keys, values, types } = this
    const pair = readKeyValue(wire, start, end)
    keys.string(wire.bytes, wire.view, pair.keyStart, pair.keyEnd)
    const before = values.length
    types.u8(appendAnyValue(values, pair.value, pair.valueStart, pair.valueEnd))
    this.valueStart = startOfString(values.bytes, before)
    return pair.keyEnd - pair.keyStart
  }
}
