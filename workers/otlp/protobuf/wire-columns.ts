import type { GrowingBuffer } from '../../../clickhouse/native/growing-buffer.ts'
import { TRUNCATED } from './refusal.ts'
import type { WireCursor } from './wire.ts'

/** The position of a field that was not sent. */
export const ABSENT = -1

/**
 * Copies the 64-bit value at `at`, which has the same format in protobuf and ClickHouse. Writes zero if it is absent.
 */
export function appendFixed64(target: GrowingBuffer, view: DataView, at: number): void {
  if (at === ABSENT) target.u64(0, 0)
  else target.u64(view.getUint32(at, true), view.getUint32(at + 4, true))
}

/** Appends the values of a repeated fixed 64-bit field: any number of packed values, or one value. */
export function appendPacked64(target: GrowingBuffer, wire: WireCursor, start: number, end: number): void {
  if (((end - start) & 7) !== 0) throw TRUNCATED
  target.raw(wire.bytes, wire.view, start, end)
}

/** Appends the values of a packed repeated field of 64-bit varints. */
export function appendPackedVarints(target: GrowingBuffer, wire: WireCursor, start: number, end: number): void {
  const { bytes } = wire
  for (let pos = start; pos < end; ) {
    const first = bytes[pos] as number
    if (first < 0x80) {
      target.u64(first, 0)
      pos++
    } else {
      wire.readVarint(pos, end)
      target.u64(wire.low, wire.high)
      pos = wire.next
    }
  }
}
