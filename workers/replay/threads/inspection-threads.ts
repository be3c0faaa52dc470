import { availableParallelism } from 'node:os'
import { CHUNK_BYTES } from '../../../schemas/http/limits.ts'
import { Budget } from '../../../shared/concurrency/budget.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { type Inspected, type Inspector, inspectChunk, type LaneInspector } from '../inspect-chunk.ts'
import { InspectionWorker, type ThreadDeath } from './inspection-worker.ts'

/** More threads would wait for the main thread, which reads payloads and writes objects at about 60 MB/s. */
const MAX_THREADS = 4
/** After this many deaths of its threads, a chunk is inspected while no other is. */
const ALONE_AFTER = 2
const MAX_DEATHS = 3
/**
 * Time after which a thread is ended. The longest texts take about a second of a core. If values are looked for in them, they take
 * two, and those that were made to take long up to four. A job keeps its lock meanwhile, because the main thread renews it. Ten
 * seconds leave half of the time in which a process must stop.
 */
const DEADLINE_MS = 10_000
/**
 * A chunk that is alone has three times as long, so that no chunk is refused where a core is up to 30 times as slow, or as
 * busy (7 times, if it was made to take long). A chunk that is refused takes 50 seconds, less than the two minutes after which a
 * pool without progress counts as wedged.
 */
const ALONE_DEADLINES = 3

const ENTRY = new URL('./inspection-thread.ts', import.meta.url)

/** Inspects chunks on other threads. */
export interface Inspection {
  readonly inspect: LaneInspector
  /** Ends the threads. No chunk may be in progress. */
  close(): Promise<void>
}

/** Options of the threads. */
export interface InspectionOptions {
  /** Most threads. Default: one fewer than there are cores, at least one and at most four. */
  readonly threads?: number
  /** Module that a thread runs. */
  readonly entry?: URL
  /** Time after which a thread that has not answered is ended. A chunk that is alone has three times as long. */
  readonly deadlineMs?: number
}

/** Starts inspecting chunks. A thread is started when a chunk finds no other one idle. */
export function startInspection(logger: Logger, options: InspectionOptions = {}): Inspection {
  const {
    threads = Math.max(1, Math.min(availableParallelism() - 1, MAX_THREADS)),
    entry = ENTRY,
    deadlineMs = DEADLINE_MS,
  } = options
  return new InspectionThreads(logger, { threads, entry, deadlineMs })
}

/**
 * Inspects each chunk on a thread that inspects no other meanwhile, so that a thread that ends harms this chunk alone. The chunk
 * is inspected again on another thread, then alone, and then refused. Chunks that wait for a thread are as many as the jobs in
 * progress have, and the budget of the pool bounds their bytes.
 */
class InspectionThreads implements Inspection {
  readonly #logger: Logger
  readonly #options: Required<InspectionOptions>
  /** Both lanes get the same time of the threads, so that chunks that take half a second each stop no lane. */
  readonly #slots: Budget
  readonly #idle: InspectionWorker[] = []

  constructor(logger: Logger, options: Required<InspectionOptions>) {
    this.#logger = logger
    this.#options = options
    this.#slots = new Budget(options.threads, { order: 'equal time' })
  }

  readonly inspect: LaneInspector = async (body, encoding, lane, valueRules) => {
    // Larger than the edge accepts, so from another version.
    if (body.length > CHUNK_BYTES) return inspectChunk(body, encoding, valueRules)
    for (let deaths = 0; deaths < MAX_DEATHS; deaths++) {
      const isAlone = deaths >= ALONE_AFTER
      const deadlineMs = this.#options.deadlineMs * (isAlone ? ALONE_DEADLINES : 1)
      const inspect = () => this.#inspectOnThread([body, encoding, valueRules], deadlineMs)
      const result = await this.#slots.run(isAlone ? this.#options.threads : 1, inspect, { lane })
      if (!('kind' in result)) return result
      this.#logger.warn(
        { reason: result.reason, bytes: body.length },
        'a thread has ended while it read a replay chunk',
      )
    }
    return { ok: false, reason: { label: 'killed_worker', detail: `${MAX_DEATHS} threads ended while they read it` } }
  }

  async #inspectOnThread(chunk: Parameters<Inspector>, deadlineMs: number): Promise<Inspected | ThreadDeath> {
    const idle = this.#idle.pop()
    const thread = idle === undefined || idle.hasEnded ? await InspectionWorker.start(this.#options.entry) : idle
    try {
      return await thread.inspect(chunk, deadlineMs)
    } finally {
      if (!thread.hasEnded) this.#idle.push(thread)
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map(thread => thread.end(this.#options.deadlineMs)))
  }
}
