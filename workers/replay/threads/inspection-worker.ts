import { Worker } from 'node:worker_threads'
import { CHUNK_BYTES } from '../../../schemas/http/limits.ts'
import { describeError, TransientError } from '../../../shared/runtime/errors.ts'
import type { Inspected, Inspector } from '../inspect-chunk.ts'
import type { InspectionAnswer, InspectionRequest } from './serve-inspections.ts'

/** The heap of a thread needs 10 MB. Memory of buffers is not part of it. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 }
const START_DEADLINE_MS = 30_000
/** Parts of a deadline. A pause of the process counts as one of them at most. */
const DEADLINE_STEPS = 10

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

  /** Starts a thread that runs this module. Throws a TransientError if that fails, because no chunk is to blame for it. */
  static async start(entry: URL): Promise<InspectionWorker> {
    const thread = InspectionWorker.#create(entry)
    const outcome = await thread.#next(START_DEADLINE_MS)
    if (outcome.kind === 'ready') return thread
    await thread.end(START_DEADLINE_MS)
    throw notStarted(outcome.kind === 'dead' ? outcome.reason : 'it answered before it was asked')
  }

  /** Node throws at once if the system has no room for another thread, or none for the memory that is shared. */
  static #create(entry: URL): InspectionWorker {
    try {
      return new InspectionWorker(entry)
    } catch (cause) {
      throw notStarted(describeError(cause), cause)
    }
  }

  /** Whether the thread has ended or is being ended. Such a thread takes no chunks. */
  get hasEnded(): boolean {
    return this.#death !== undefined
  }

  /**
   * Returns what the thread found, or that it is dead. A thread that has not answered by the deadline is ended. Throws what the
   * inspection throws.
   */
  async inspect(
    [body, encoding, valueRules]: Parameters<Inspector>,
    deadlineMs: number,
  ): Promise<Inspected | ThreadDeath> {
    this.#body.set(body)
    this.#worker.postMessage({ bytes: body.length, encoding, valueRules } satisfies InspectionRequest)
    const outcome = await this.#next(deadlineMs)
    if (outcome.kind === 'inspected') return outcome.inspected
    if (outcome.kind === 'failed') throw withCode(outcome)
    const reason = outcome.kind === 'dead' ? outcome.reason : 'it began again'
    const hasEnded = await this.end(deadlineMs)
    return { kind: 'dead', reason: hasEnded ? reason : `${reason}, and has not ended since` }
  }

  /**
   * Ends the thread and returns true. Returns false at the deadline if it still runs, because nothing can interrupt a call of the
   * system: it ends after that call.
   */
  end(deadlineMs: number): Promise<boolean> {
    this.#death ??= { kind: 'dead', reason: 'it is being ended' }
    return new Promise(resolve => {
      const cancel = afterAwake(deadlineMs, () => resolve(false))
      const finish = () => {
        cancel()
        resolve(true)
      }
      this.#worker.terminate().then(finish, finish)
    })
  }

  /** Returns the next outcome: the deadline counts as a death. */
  #next(deadlineMs: number): Promise<Outcome> {
    return new Promise(resolve => {
      const take = (outcome: Outcome) => {
        cancel()
        this.#take = undefined
        resolve(outcome)
      }
      const late: ThreadDeath = { kind: 'dead', reason: `it took more than ${deadlineMs} ms` }
      const cancel = afterAwake(deadlineMs, () => take(late))
      this.#take = take
      if (this.#death !== undefined) take(this.#death)
    })
  }
}

/**
 * Runs the task once this process has been awake for a time, and returns a function that cancels it. Steps that pass one after
 * the other measure it. A single timer would be due when a process continues that was stopped, or whose machine was, and a
 * thread that was stopped as well would be blamed for the time.
 */
function afterAwake(ms: number, task: () => void): () => void {
  let steps = 0
  const timer = setInterval(() => {
    steps++
    if (steps < DEADLINE_STEPS) return
    clearInterval(timer)
    task()
  }, ms / DEADLINE_STEPS)
  return () => clearInterval(timer)
}

function notStarted(reason: string, cause?: unknown): TransientError {
  return new TransientError(`a thread for replay chunks could not be started: ${reason}`, { cause })
}

function withCode({ error, code }: InspectionAnswer & { readonly kind: 'failed' }): unknown {
  return code !== undefined && error instanceof Error ? Object.assign(error, { code }) : error
}
