import { randomInt } from 'node:crypto'
import type { SkeletonRow } from '../../clickhouse/queries/traces/select-trace-skeleton.ts'
import { DANGLING, ROOT, type TraceShape } from './choose-spans.ts'

/** The whole trace, one entry per distinct span, in the order of the answer: by start, then span id. */
export interface ArrangedTrace {
  readonly shape: TraceShape
  /** For each span, the number that `add` gave it. */
  readonly numbers: Uint32Array
  readonly rootCount: number
  readonly danglingParentCount: number
  readonly startedAtUnixNano: bigint
  readonly endedAtUnixNano: bigint
}

const FIRST_CAPACITY = 1_024

/** Ids are chosen by clients: without it they could be chosen to fall into one slot. */
const SEED = randomInt(2 ** 32)

/**
 * Collects the rows of a trace without their texts, one entry per span id, in typed arrays: about 65 bytes a span, where
 * objects would take 400. Of the rows of one span the one received first stays, and all are counted.
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
  /** Open addressing over span ids: number + 1, or 0 for a free slot. Never more than half full. */
  #slots = new Uint32Array(2 * FIRST_CAPACITY)

  /** How many distinct spans there are. */
  get size(): number {
    return this.#size
  }

  /** Returns the span's number, and whether this row is the one to show for it so far. */
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

  occurrences(number: number): number {
    return this.#occurrences[number] ?? 0
  }

  spanId(number: number): string {
    return (this.#ids[number] ?? 0n).toString(16).padStart(16, '0')
  }

  arrange(): ArrangedTrace {
    const numbers = this.#inOrder()
    const positions = new Uint32Array(numbers.length)
    numbers.forEach((number, position) => {
      positions[number] = position
    })
    const shape = {
      parents: new Int32Array(numbers.length),
      isError: new Uint8Array(numbers.length),
      sizes: new Uint32Array(numbers.length),
    }
    let rootCount = 0
    let danglingParentCount = 0
    let startedAtUnixNano = this.#starts[numbers[0] ?? 0] ?? 0n
    let endedAtUnixNano = 0n
    numbers.forEach((number, position) => {
      const parentId = this.#parentIds[number] ?? 0n
      const parent = parentId === 0n ? 0 : (this.#slots[this.#slotOf(parentId)] ?? 0)
      if (parentId === 0n) rootCount++
      else if (parent === 0) danglingParentCount++
      shape.parents[position] = parentId === 0n ? ROOT : parent === 0 ? DANGLING : (positions[parent - 1] ?? DANGLING)
      shape.isError[position] = this.#isError[number] ?? 0
      shape.sizes[position] = this.#textBytes[number] ?? 0
      const start = this.#starts[number] ?? 0n
      // A span may end before it starts: clocks are set back.
      const end = maxOf(start, this.#ends[number] ?? 0n)
      if (start < startedAtUnixNano) startedAtUnixNano = start
      if (end > endedAtUnixNano) endedAtUnixNano = end
    })
    return { shape, numbers, rootCount, danglingParentCount, startedAtUnixNano, endedAtUnixNano }
  }

  /** Rows come sorted where ClickHouse sorted them and no span was received twice with another start: then this is one pass. */
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

  /** The slot that holds this id, or the free one where it belongs. */
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
    const capacity = 2 * this.#ids.length
    this.#ids = grown(this.#ids, new BigUint64Array(capacity))
    this.#parentIds = grown(this.#parentIds, new BigUint64Array(capacity))
    this.#starts = grown(this.#starts, new BigUint64Array(capacity))
    this.#ends = grown(this.#ends, new BigUint64Array(capacity))
    this.#receivedAt = grown(this.#receivedAt, new BigInt64Array(capacity))
    this.#digests = grown(this.#digests, new BigUint64Array(capacity))
    this.#textBytes = grown(this.#textBytes, new Uint32Array(capacity))
    this.#occurrences = grown(this.#occurrences, new Uint32Array(capacity))
    this.#isError = grown(this.#isError, new Uint8Array(capacity))
    this.#slots = new Uint32Array(2 * capacity)
    for (let number = 0; number < this.#size; number++) {
      this.#slots[this.#slotOf(this.#ids[number] ?? 0n)] = number + 1
    }
  }
}

function maxOf(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function grown<A extends BigUint64Array | BigInt64Array | Uint32Array | Uint8Array>(from: A, to: A): A {
  to.set(from as never)
  return to
}
