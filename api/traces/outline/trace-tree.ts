import { DANGLING } from '../choose-spans.ts'
import type { Waterfall } from '../load-columns.ts'

const ERROR = 2
const NANOS_PER_MS = 1e6

/** A trace as a tree. Spans are named by their index in the order of their starts. It is made in linear time. */
export class TraceTree {
  readonly #columns: Waterfall
  readonly #names: readonly string[]
  readonly #services: readonly string[]
  /** The children of a span are `#order` from `#starts[span]` to `#starts[span + 1]`, the earliest first. */
  readonly #starts: Uint32Array
  readonly #order: Uint32Array
  readonly #leadsToError: Uint8Array
  /** Spans without a parent in the trace, the earliest first. */
  readonly tops: readonly number[]
  readonly errorCount: number

  constructor(columns: Waterfall) {
    this.#columns = columns
    this.#names = columns.names.distinct()
    this.#services = columns.services.distinct()
    const { parents } = columns.arranged
    const tops: number[] = []
    this.#starts = new Uint32Array(parents.length + 1)
    for (const parent of parents) if (parent >= 0) this.#starts[parent + 1] = (this.#starts[parent + 1] ?? 0) + 1
    for (let span = 1; span <= parents.length; span++) {
      this.#starts[span] = (this.#starts[span] ?? 0) + (this.#starts[span - 1] ?? 0)
    }
    const next = this.#starts.slice()
    this.#order = new Uint32Array(this.#starts[parents.length] ?? 0)
    this.#leadsToError = new Uint8Array(parents.length)
    let errorCount = 0
    parents.forEach((parent, span) => {
      if (parent < 0) tops.push(span)
      else {
        const at = next[parent] ?? 0
        this.#order[at] = span
        next[parent] = at + 1
      }
      if (!this.isError(span)) return
      errorCount++
      // Each path ends at a top, or where an earlier path or a cycle was.
      for (let above = span; above >= 0 && this.#leadsToError[above] === 0; above = parents[above] ?? DANGLING) {
        this.#leadsToError[above] = 1
      }
    })
    this.tops = tops
    this.errorCount = errorCount
  }

  get size(): number {
    return this.#columns.arranged.numbers.length
  }

  children(span: number): Uint32Array {
    return this.#order.subarray(this.#starts[span], this.#starts[span + 1])
  }

  isError(span: number): boolean {
    return this.#columns.facts.statuses[this.#rowOf(span)] === ERROR
  }

  /** Returns whether the span or one below it has the status of an error. */
  leadsToError(span: number): boolean {
    return this.#leadsToError[span] === 1
  }

  isParentMissing(span: number): boolean {
    return this.#columns.arranged.parents[span] === DANGLING
  }

  /** Returns the number of the name, or a negative number if too many names are longer than what is kept. */
  nameNumber(span: number): number {
    return this.#columns.names.indexOf(this.#rowOf(span))
  }

  /** Returns the number of the service, or a negative one. */
  serviceNumber(span: number): number {
    return this.#columns.services.indexOf(this.#rowOf(span))
  }

  name(span: number): string {
    return this.#names[this.nameNumber(span)] ?? ''
  }

  service(span: number): string {
    return this.#services[this.serviceNumber(span)] ?? ''
  }

  spanId(span: number): string {
    return this.#columns.skeleton.spanId(this.#numberOf(span))
  }

  /** Returns the time from the start of the trace to that of the span. */
  startMs(span: number): number {
    return this.#columns.skeleton.nanosAfterStart(this.#numberOf(span), this.#numberOf(0)) / NANOS_PER_MS
  }

  durationMs(span: number): number {
    return this.#columns.skeleton.durationNanos(this.#numberOf(span)) / NANOS_PER_MS
  }

  /** Returns the span with this id, or undefined. */
  find(spanId: string): number | undefined {
    for (let span = 0; span < this.size; span++) if (this.spanId(span) === spanId) return span
    return undefined
  }

  #numberOf(span: number): number {
    return this.#columns.arranged.numbers[span] ?? 0
  }

  #rowOf(span: number): number {
    return this.#columns.skeleton.rowOf(this.#numberOf(span))
  }
}
