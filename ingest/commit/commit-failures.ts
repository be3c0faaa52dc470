import type { QueueName } from '../../schemas/queues/names.ts'
import type { IdentifiedRequest } from '../../shared/http/route.ts'
import { describeError, errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Each queue logs at most one line in this time: an outage fails thousands of requests a second. */
const LOG_INTERVAL_MS = 1_000

/** The collaborators of `CommitFailures`. */
interface CommitFailuresDeps {
  readonly logger: Logger
  /** Counts a failed request of a queue: `penstock_commit_failures_total`. */
  readonly count: (queue: QueueName) => void
  readonly now?: () => number
}

/** When a queue logged last, and how many failures it has not logged since. */
interface LogState {
  loggedAtMs: number
  suppressed: number
}

/**
 * Reports requests that failed because Redis did not confirm their commit. The counter counts every request. The log has
 * the cause, at the level `warn` and at most one line a second per queue.
 */
export class CommitFailures {
  readonly #logger: Logger
  readonly #count: (queue: QueueName) => void
  readonly #now: () => number
  readonly #states = new Map<QueueName, LogState>()

  constructor({ logger, count, now = performance.now.bind(performance) }: CommitFailuresDeps) {
    this.#logger = logger
    this.#count = count
    this.#now = now
  }

  /** Counts the failure, and logs it with the id of the request unless its queue has logged one within the last second. */
  report(queue: QueueName, error: unknown, request?: IdentifiedRequest): void {
    this.#count(queue)
    const now = this.#now()
    const state = this.#states.get(queue)
    if (state !== undefined && now - state.loggedAtMs < LOG_INTERVAL_MS) {
      state.suppressed++
      return
    }
    const suppressed = state?.suppressed ?? 0
    this.#states.set(queue, { loggedAtMs: now, suppressed: 0 })
    this.#logger.warn(
      { requestId: request?.requestId, queue, suppressed, ...failureFields(error) },
      'a request could not be stored',
    )
  }
}

/** Returns the log fields of a failure. The error of a commit wraps what Redis or the deadline reported. */
function failureFields(error: unknown): { readonly error: string; readonly code?: string; readonly cause?: string } {
  const cause = error instanceof Error ? error.cause : undefined
  return { ...errorFields(error), ...(cause !== undefined && { cause: describeError(cause) }) }
}
