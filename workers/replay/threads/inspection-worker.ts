import { Worker } from 'node:worker_threads'
import { CHUNK_BYTES } from '../../../schemas/http/limits.ts'
import { describeError, TransientError } from '../../../shared/runtime/errors.ts'
import type { Inspected } from '../inspect-chunk.ts'
import type { InspectionAnswer, InspectionRequest } from './serve-inspections.ts'

/** The heap of a thread needs 10 MB. Memory of buffers is not part of it. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 }
const START_DEADLINE_MS = 30_000

/** The result of a thread that ended, or was ended, before it has answered. */
export interface ThreadDeath {
  readonly kind: 'dead'
  readonly reason: string
}

type Outcome = InspectionAnswer | ThreadDeath

/**
 * A thread that inspects one chunk at a time, as the main thread sees it. The body is copied into memory that both share, which
 * takes 0.1 ms a MiB. A body that is moved to the thread would be lost with it, and memory shared for each body would be freed
 * only when both threads have collected their garbage.
 */
export class InspectionWorker {
  readonly #worker: Worker
  readonly #memory = new SharedArrayBuffer(CHUNK_BYTES)
  readonly #body = new Uint8Array(this.#memory)
  /**
   * Takes the next outcome. Races between promises would not do: each race leaves a reaction at the promise of the end of the
   * thread, for as long as the thread lives.
   */
  #take: ((outcome: Outcome) => void) | undefined
  #fault = ''
  #death: ThreadDeath | undefined

  private constructor(entry: URL) {
    this.#worker = new Worker(entry, {
      name: 'replay inspection',
      workerData: this.#memory,
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: RESOURCE_LIMITS,
    })
    this.#worker.on('message', (answer: InspectionAnswer) => this.#take?.(answer))
    this.#worker.on('error', error => {
      this.#fault = `: ${describeError(error)}`
    })
    this.#worker.once('exit', code => {
      this.#death = { kind: 'dead', reason: `the thread ended with code ${code}${this.#fault}` }
      this.#take?.(this.#death)
    })
    // A process that stops does not wait for a thread.
    this.#worker.unref()
  }

  /** Starts a thread. Throws a TransientError if that fails, because no chunk is to blame for it. */
  static async start(entry: URL): Promise<InspectionWorker> {
    const thread = new InspectionWorker(entry)
    const outcome = await thread.#next(START_DEADLINE_MS)
    if (outcome.kind === 'ready') return thread
    await thread.end()
    const reason = outcome.kind === 'dead' ? outcome.reason : 'it answered before it was asked'
    throw new TransientError(`a thread for replay chunks could not be started: ${reason}`)
  }

  get hasEnded(): boolean {
    return this.#death !== undefined
  }

  /**
   * Returns what the thread found, or that it is dead, as it is after the deadline at the latest. Throws what the inspection
   * throws.
   */
  async inspect(
    body: Buffer,
    encoding: InspectionRequest['encoding'],
    deadlineMs: number,
  ): Promise<Inspected | ThreadDeath> {
    this.#body.set(body)
    this.#worker.postMessage({ bytes: body.length, encoding } satisfies InspectionRequest)
    const outcome = await this.#next(deadlineMs)
    if (outcome.kind === 'inspected') return outcome.inspected
    if (outcome.kind === 'failed') throw withCode(outcome)
    await this.end()
    return outcome.kind === 'dead' ? outcome : { kind: 'dead', reason: 'it began again' }
  }

  /** Ends the thread, whatever it does. */
  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  /** Returns the next outcome: the deadline counts as a death. */
  #next(deadlineMs: number): Promise<Outcome> {
    return new Promise(resolve => {
      const take = (outcome: Outcome) => {
        clearTimeout(timer)
        this.#take = undefined
        resolve(outcome)
      }
      const late: ThreadDeath = { kind: 'dead', reason: `it took more than ${deadlineMs} ms` }
      const timer = setTimeout(() => take(late), deadlineMs)
      this.#take = take
      if (this.#death !== undefined) take(this.#death)
    })
  }
}

function withCode({ error, code }: InspectionAnswer & { readonly kind: 'failed' }): unknown {
  return code !== undefined && error instanceof Error ? Object.assign(error, { code }) : error
}
