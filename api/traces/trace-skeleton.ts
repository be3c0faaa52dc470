import { randomInt } from 'node:crypto'
import type { SkeletonRow } from '../../clickhouse/queries/traces/select-trace-skeleton.ts'
import { DANGLING, ROOT, type TraceShape } from './choose-spans.ts'

/** The whole trace, with one entry per distinct span in the order of the response: by start, then by span id. */
export interface ArrangedTrace {
  readonly shape: TraceShape
  /** The number of each span, as `add` returned it. */
  readonly numbers: Uint32Array
  readonly rootCount: number
  readonly danglingParentCount: number
  readonly startedAtUnixNano: bigint
  readonly endedAtUnixNano: bigint
}

const FIRST_CAPACITY = 1_024

/** A random seed of the hash, without which clients could choose span ids that all fall into one slot. */
const SEED = randomInt(2 ** 32)

/**
 * Collects the rows of a trace without their texts, with one entry per span id. The entries are in typed arrays, which take
 * about 65 bytes per span instead of the 400 of objects. If a span has several rows, the one received first is kept, and all
 * are counted.
 */
export class TraceSkeleton {
  #size = 0
  #ids = new BigUint64Array(FIRST_CAPACITY)
  #parentIds = new BigUint64Array(FIRST_CAPACITY)
  #starts = new BigUint64Array(FIRST_CAPACITY)
  #ends = new BigUint64Array(FIRST_CAPACITY)
  #receivedAt = new BigInt64Array(FIRST_CAPACITY)
  #digests = new BigUint64Array(FIRST_CAPACITY)
  #textBytes = new Uint32Array(FIRST_CAPACITY)
  #occurrences = new Uint32Array(FIRST_CAPACITY)
  #isError = new Uint8Array(FIRST_CAPACITY)
  /** A hash table over span ids, with open addressing. A slot contains number + 1, or 0 if it is free. At most half is used. */
  #slots = new Uint32Array(2 * FIRST_CAPACITY)

  /** The number of distinct spans. */
  get size(): number {
    return this.#size
  }

  /** Adds a row. Returns the number of its span, and whether this row is the one to show for the span so far. */
  add(row: SkeletonRow): { number: number; isShown: boolean } {
    const slot = this.#slotOf(row.spanId)
    const known = this.#slots[slot] ?? 0
    if (known === 0) {
      if (this.#size === this.#ids.length) {
        this.#grow()
        return this.add(row)
      }
      const number = this.#size++
      this.#slots[slot] = number + 1
      this.#ids[number] = row.spanId
      this.#occurrences[number] = 1
      this.#set(number, row)
      return { number, isShown: true }
    }
    const number = known - 1
    this.#occurrences[number] = this.occurrences(number) + 1
    const isShown = this.#precedes(row, number)
    if (isShown) this.#set(number, row)
    return { number, isShown }
  }

  /** Returns how many rows of the span were added. */
  occurrences(number: number): number {
    return this.#occurrences[number] ?? 0
  }

  /** Returns the id of the span in hex. */
  spanId(number: number): string {
    return (this.#ids[number] ?? 0n).toString(16).padStart(16, '0')
  }

  /**
   * Sorts the spans, links them to their parents, and counts roots and missing parents. Frees each column as soon as nothing
   * needs it: afterwards no row can be added, and ids and occurrences can still be read.
   */
  arrange(): ArrangedTrace {
    free(this.#receivedAt, this.#digests)
    const numbers = this.#inOrder()
    let startedAtUnixNano = this.#starts[numbers[0] ?? 0] ?? 0n
    let endedAtUnixNano = 0n
    for (const number of numbers) {
      const start = this.#starts[number] ?? 0n
      // A span may end before it starts, because clocks are set back.
      const end = maxOf(start, this.#ends[number] ?? 0n)
      if (start < startedAtUnixNano) startedAtUnixNano = start
      if (end > endedAtUnixNano) endedAtUnixNano = end
    }
    free(this.#starts, this.#ends)
    const shape = this.#shapeOf(numbers)
    free(this.#parentIds, this.#textBytes, this.#isError, this.#slots)
    let rootCount = 0
    let danglingParentCount = 0
    for (const parent of shape.parents) {
      if (parent === ROOT) rootCount++
      else if (parent === DANGLING) danglingParentCount++
    }
    return { shape, numbers, rootCount, danglingParentCount, startedAtUnixNano, endedAtUnixNano }
  }

  #shapeOf(numbers: Uint32Array): TraceShape {
    const positions = new Uint32Array(numbers.length)
    numbers.forEach((number, position) => {
      positions[number] = position
    })
    const parents = new Int32Array(numbers.length)
    const isError = new Uint8Array(numbers.length)
    const sizes = new Uint32Array(numbers.length)
    numbers.forEach((number, position) => {
      parents[position] = this.#parentPosition(number, positions)
      isError[position] = this.#isError[number] ?? 0
      sizes[position] = this.#textBytes[number] ?? 0
    })
    return { parents, isError, sizes }
  }

  #parentPosition(number: number, positions: Uint32Array): number {
    const parentId = this.#parentIds[number] ?? 0n
    if (parentId === 0n) return ROOT
    const parent = this.#slots[this.#slotOf(parentId)] ?? 0
    return parent === 0 ? DANGLING : (positions[parent - 1] ?? DANGLING)
  }

  /**
   * Sorts the numbers by start and span id. If ClickHouse sorted the rows and no span was received twice with different
   * starts, they are sorted already, and one pass confirms it.
   */
  #inOrder(): Uint32Array {
    const numbers = Uint32Array.from({ length: this.#size }, (_, number) => number)
    const compare = (a: number, b: number) => {
      const [startA = 0n, startB = 0n] = [this.#starts[a], this.#starts[b]]
      if (startA !== startB) return startA < startB ? -1 : 1
      return (this.#ids[a] ?? 0n) < (this.#ids[b] ?? 0n) ? -1 : 1
    }
    for (let number = 1; number < numbers.length; number++) {
      if (compare(number - 1, number) > 0) return numbers.sort(compare)
    }
    return numbers
  }

  #precedes(row: SkeletonRow, number: number): boolean {
    const receivedAt = this.#receivedAt[number] ?? 0n
    if (row.receivedAtUnixMs !== receivedAt) return row.receivedAtUnixMs < receivedAt
    return row.digest < (this.#digests[number] ?? 0n)
  }

  #set(number: number, row: SkeletonRow): void {
    this.#parentIds[number] = row.parentSpanId
    this.#starts[number] = row.startTimeUnixNano
    this.#ends[number] = row.endTimeUnixNano
    this.#receivedAt[number] = row.receivedAtUnixMs
    this.#digests[number] = row.digest
    this.#textBytes[number] = row.textBytes
    this.#isError[number] = row.isError ? 1 : 0
  }

  /** Returns the slot that contains this id, or the free slot where it belongs. */
  #slotOf(id: bigint): number {
    const mask = this.#slots.length - 1
    const low = Math.imul(Number(id & 0xffff_ffffn) ^ SEED, 0x9e37_79b1)
    const high = Math.imul(Number(id >> 32n) ^ SEED, 0x85eb_ca6b)
    const mixed = Math.imul((low ^ (low >>> 15)) + (high ^ (high >>> 13)), 0xc2b2_ae35)
    let slot = (mixed ^ (mixed >>> 16)) & mask
    for (;;) {
      const known = this.#slots[slot] ?? 0
      if (known === 0 || this.#ids[known - 1] === id) return slot
      slot = (slot + 1) & mask
    }
  }

  #grow(): void {
    this.#ids = new BigUint64Array(doubled(this.#ids))
    this.#parentIds = new BigUint64Array(doubled(this.#parentIds))
    this.#starts = new BigUint64Array(doubled(this.#starts))
    this.#ends = new BigUint64Array(doubled(this.#ends))
    this.#receivedAt = new BigInt64Array(doubled(this.#receivedAt))
    this.#digests = new BigUint64Array(doubled(this.#digests))
    this.#textBytes = new Uint32Array(doubled(this.#textBytes))
    this.#occurrences = new Uint32Array(doubled(this.#occurrences))
    this.#isError = new Uint8Array(doubled(this.#isError))
    this.#slots = new Uint32Array(doubled(this.#slots)).fill(0)
    for (let number = 0; number < this.#size; number++) {
      this.#slots[this.#slotOf(this.#ids[number] ?? 0n)] = number + 1
    }
  }
}

function maxOf(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** Returns the memory of an array with twice the size. The old memory is freed at once, and not when V8 collects it. */
function doubled({ buffer }: { readonly buffer: ArrayBuffer }): ArrayBuffer {
  return buffer.transfer(2 * buffer.byteLength)
}

/** Frees the memory of columns now, not when V8 collects it. They are empty afterwards. */
function free(...columns: readonly { readonly buffer: ArrayBuffer }[]): void {
  for (const { buffer } of columns) buffer.transfer(0)
}
