import type { UploadPhase, UploadTimings } from '../upload-report.ts'

/** Measures how long each phase takes. A phase may be entered more than once, and one may run beside those that are entered. */
export class Stopwatch {
  readonly #now: () => number
  readonly #startedAt: number
  readonly #spent: Record<UploadPhase, number> = { preflight: 0, discover: 0, createRelease: 0, upload: 0, cleanup: 0 }
  #phase: UploadPhase = 'preflight'
  #since: number

  constructor(now: () => number) {
    this.#now = now
    this.#startedAt = this.#since = now()
  }

  enter(phase: UploadPhase): void {
    this.#settle()
    this.#phase = phase
  }

  /** Adds the time until a promise settles, which passes beside the phases that are entered. */
  async time<T>(phase: UploadPhase, promise: Promise<T>): Promise<T> {
    const since = this.#now()
    try {
      return await promise
    } finally {
      this.#spent[phase] += Math.max(0, Math.round(this.#now() - since))
    }
  }

  timings(): UploadTimings {
    this.#settle()
    return { ...this.#spent, total: Math.max(0, Math.round(this.#since - this.#startedAt)) }
  }

  #settle(): void {
    const at = this.#now()
    this.#spent[this.#phase] += Math.max(0, Math.round(at - this.#since))
    this.#since = at
  }
}
