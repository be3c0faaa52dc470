import { MIB } from '../../schemas/units.ts'
import type { ColumnMemory } from './column-memory.ts'
import type { RowBatch } from './row-batch.ts'

/** Memory of empty buffers is not accounted for, since it cannot be given back. */
const UNACCOUNTED_BYTES = MIB
/** Rows with more memory than this give it back at once: only requests of a hostile client need so much. */
const KEPT_BYTES = 104 * MIB

/** The row batches of one pool, which are used again and again, and their part of the memory of the process. */
export class RowsPool {
  readonly #name: string
  readonly #memory: ColumnMemory
  readonly #idle: RowBatch[]
  readonly #wanted: ((rows: RowBatch) => void)[] = []
  readonly #reserved = new Map<RowBatch, number>()

  constructor(name: string, memory: ColumnMemory, rows: readonly RowBatch[]) {
    this.#name = name
    this.#memory = memory
    this.#idle = [...rows]
    memory.onPressure(() => this.#shrinkIdle())
  }

  /** Waits until a row batch is idle, and returns it empty. */
  take(): Promise<RowBatch> {
    const rows = this.#idle.pop()
    return rows ? Promise.resolve(rows) : new Promise(resolve => this.#wanted.push(resolve))
  }

  /** Adds a row batch to the pool. */
  add(rows: RowBatch): void {
    const wanted = this.#wanted.shift()
    if (wanted) wanted(rows)
    else this.#idle.push(rows)
    this.#memory.wake()
  }

  /** Empties the rows for the next batch. */
  giveBack(rows: RowBatch): void {
    if (rows.capacityBytes > KEPT_BYTES) rows.shrink()
    else rows.reset()
    this.settle(rows)
    this.add(rows)
  }

  /** Reserves memory for a job that is appended to the rows, as far as they have none, or returns false if it must wait. */
  tryReserve(rows: RowBatch, bytes: number): boolean {
    const reserved = this.#reserved.get(rows) ?? 0
    const missing = Math.max(rows.bytes + bytes - reserved, 0)
    const isReserved = missing === 0 || this.#memory.take(this.#name, missing)
    if (isReserved) this.#reserved.set(rows, reserved + missing)
    return isReserved
  }

  /** Waits until memory for a job can be reserved. The rows must be empty, and hold no memory while their pool waits. */
  async reserve(rows: RowBatch, bytes: number, abortSignal?: AbortSignal): Promise<void> {
    if (this.tryReserve(rows, bytes)) return
    rows.shrink()
    this.settle(rows)
    await this.#memory.reserve(this.#name, bytes, abortSignal)
    this.#reserved.set(rows, bytes)
  }

  /** Accounts for the memory that the rows and their batch really occupy, once jobs are appended. */
  settle(rows: RowBatch, otherBytes = 0): void {
    const { capacityBytes } = rows
    const actual = (capacityBytes > UNACCOUNTED_BYTES ? capacityBytes : 0) + otherBytes
    const reserved = this.#reserved.get(rows) ?? 0
    if (actual < reserved) this.#memory.give(this.#name, reserved - actual)
    else if (actual > reserved && !this.#memory.take(this.#name, actual - reserved)) return
    this.#reserved.set(rows, actual)
  }

  #shrinkIdle(): void {
    for (const rows of this.#idle) {
      rows.shrink()
      this.settle(rows)
    }
  }
}
