import type { GrowingBuffer } from './growing-buffer.ts'

/** A UInt64 or Int64 from a whole number, for columns whose numbers are JavaScript's own: exact to 2^53. */
export function append64(buffer: GrowingBuffer, value: number): void {
  const high = Math.floor(value / 0x1_0000_0000)
  buffer.u64(value - high * 0x1_0000_0000, high)
}
