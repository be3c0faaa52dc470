import { setTimeout as delay } from 'node:timers/promises'
import { errorFields, PermanentError, TransientError } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'

/** Dependencies of a retried operation. */
export interface RetryDeps {
  /**
   * Returns whether this worker still holds the locks of its jobs. It is checked before every attempt, since the process
   * may have been suspended for an hour and its jobs taken over by another worker.
   */
  readonly holdsLock: () => Promise<boolean>
  readonly logger: Logger
  /** Ends the wait for an unavailable store. The next worker takes up the job. */
  readonly stopping: AbortSignal
  /**
   * Runs before every attempt with its number, from 1 on, as a sign that the process works while the store is unavailable.
   */
  readonly onAttempt?: ((attempt: number) => void) | undefined
  /** Runs after an attempt that succeeded, as a sign of progress. */
  readonly onSuccess?: (() => void) | undefined
  /** Runs after every attempt that failed with a passing fault. An error that it throws ends the retries. */
  readonly onFailure?: ((error: unknown) => void) | undefined
}

/** Repeats an operation until it succeeds. The first argument names the operation in the log. */
export type Retry = <T>(operation: string, work: () => Promise<T>) => Promise<T>

/**
 * Repeats an operation that fails with a passing fault. The job keeps its slot meanwhile, so that the pool pauses while
 * its store is unavailable. Rethrows PermanentErrors at once. Throws a TransientError when the lock was lost or the
 * process is stopping.
 */
export async function retryUntilStopped<T>(deps: RetryDeps, operation: string, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    if (!(await deps.holdsLock()))
      throw new TransientError('the lock of the job was lost', { code: 'PENSTOCK_LOCK_LOST' })
    deps.onAttempt?.(attempt)
    try {
      const result = await work()
      deps.onSuccess?.()
      return result
    } catch (error) {
      if (error instanceof PermanentError) throw error
      deps.onFailure?.(error)
      const waitMs = retryDelayMs(attempt)
      if (attempt === 1 || attempt % 10 === 0) {
        deps.logger.warn({ operation, attempt, waitMs, ...errorFields(error) }, 'operation failed, will be retried')
      }
      await delay(waitMs, undefined, { signal: deps.stopping }).catch(cause => {
        throw new TransientError('stopped while the store was unavailable', { cause, code: 'PENSTOCK_STOPPING' })
      })
    }
  }
}

/** Returns an exponential delay from 200 ms to 30 s, of which up to half is subtracted at random. */
export function retryDelayMs(attempt: number): number {
  const fullMs = Math.min(200 * 2 ** Math.min(attempt - 1, 10), 30_000)
  return Math.round(fullMs * (1 - Math.random() / 2))
}
