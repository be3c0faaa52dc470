import { setTimeout as delay } from 'node:timers/promises'
import { describeError, PermanentError, TransientError } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'

export interface RetryDeps {
  /** Whether this worker still answers for the work: it may have been stopped for an hour, and its job taken over. */
  readonly holdsLock: () => Promise<boolean>
  readonly logger: Logger
  /** Ends the waiting for a store that is away; the job is taken up by the next worker. */
  readonly stopping: AbortSignal
  /** A sign of life: the work waits for its store, but this worker is at it. */
  readonly onAttempt?: () => void
}

/**
 * Repeats what fails for a passing reason, where it stands: the job keeps its place, so the pool pauses while its store
 * is away. Throws PermanentErrors as they come, and a TransientError when the work is no longer ours or we are stopping.
 */
export async function retryUntilStopped<T>(deps: RetryDeps, what: string, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    if (!(await deps.holdsLock())) throw new TransientError('the lock of the job was lost')
    deps.onAttempt?.()
    try {
      return await work()
    } catch (error) {
      if (error instanceof PermanentError) throw error
      const waitMs = retryDelayMs(attempt)
      if (attempt === 1 || attempt % 10 === 0) {
        deps.logger.warn({ what, attempt, waitMs, error: describeError(error) }, 'will be repeated')
      }
      await delay(waitMs, undefined, { signal: deps.stopping }).catch(cause => {
        throw new TransientError('stopped while the store was away', { cause })
      })
    }
  }
}

/** Exponential from 200 ms to 30 s, with up to half of it taken off at random. */
export function retryDelayMs(attempt: number): number {
  const fullMs = Math.min(200 * 2 ** Math.min(attempt - 1, 10), 30_000)
  return Math.round(fullMs * (1 - Math.random() / 2))
}
