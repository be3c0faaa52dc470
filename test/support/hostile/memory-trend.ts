import { readdirSync, readFileSync } from 'node:fs'
import { KIB, MIB } from '../../../schemas/units.ts'

const SAMPLE_EVERY_MS = 250
/** Samples that show a trend: 75 seconds. */
const TREND_SAMPLES = 300
/** Largest quotient of a process whose memory is flat. */
export const MOST_GROWTH = 1.1

/** Samples the memory of a process during a run, from the moment at which it is warm. */
export class MemoryTrend {
  readonly #read: () => number
  readonly #samples: number[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(read: () => number) {
    this.#read = read
  }

  /** Begins to sample. */
  start(): void {
    this.#timer = setInterval(() => this.sample(), SAMPLE_EVERY_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Adds a sample if the process runs. For a run that never leaves a turn to the timer. */
  sample(): void {
    const bytes = this.#read()
    if (bytes > 0) this.#samples.push(bytes)
  }

  /** Returns whether there are enough samples to judge the growth. */
  get isLong(): boolean {
    return this.#samples.length >= TREND_SAMPLES
  }

  /**
   * Returns how much larger the last fifth of the samples is than the second one, as the quotient of their medians,
   * which a bomb that is decoded while a sample is taken does not change.
   */
  get growth(): number {
    const fifth = Math.floor(this.#samples.length / 5)
    if (fifth === 0) return 1
    return median(this.#samples.slice(-fifth)) / median(this.#samples.slice(fifth, 2 * fifth))
  }

  /** Returns the growth and the median of each tenth of the run in MiB. */
  toString(): string {
    const tenth = Math.floor(this.#samples.length / 10)
    const medians = Array.from({ length: 10 }, (_, i) => median(this.#samples.slice(i * tenth, (i + 1) * tenth)))
    return `× ${this.growth.toFixed(3)} (${medians.map(bytes => Math.round(bytes / MIB)).join(' ')} MiB)`
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** Returns the resident memory of a process, or 0 if it has ended. */
export function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * KIB
  } catch {
    return 0
  }
}

/** Returns the number of files and sockets that a process has open, or 0 if it has ended. */
export function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}
