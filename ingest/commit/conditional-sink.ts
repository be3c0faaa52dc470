import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { Admission } from '../admission/admission.ts'
import type { CommitFailures } from './commit-failures.ts'
import type { ConditionalCommit } from './conditional-commit.ts'

/** One queue as a route sees it whose frames are accepted on a condition. */
export interface ConditionalSink {
  /** Returns INGEST_BACKPRESSURE when the queue takes no more requests, or undefined. */
  refuse(): Problem | undefined
  /**
   * Calls `write`, which commits a frame, before it returns. Resolves with the result of `write`, or with undefined when
   * Redis did not confirm. The request's problem is then NOT_STORED.
   */
  store<T>(write: (commit: ConditionalCommit) => Promise<T>): Promise<T | undefined>
  /** Adds a frame that was accepted to the backlog of the queue. */
  admitted(bytes: number): void
}

/** The collaborators of a conditional sink. */
export interface ConditionalSinkDeps {
  readonly commit: ConditionalCommit
  readonly admission: Pick<Admission, 'refuse' | 'admitted'>
  readonly failures: Pick<CommitFailures, 'report'>
}

/** Creates the sink of a queue that is written by conditional commits. */
export function createConditionalSink(
  queue: AdmittedQueue,
  { commit, admission, failures }: ConditionalSinkDeps,
): ConditionalSink {
  return {
    refuse: () => admission.refuse(queue),
    async store(write) {
      try {
        return await write(commit)
      } catch (error) {
        failures.report(queue, error)
        return undefined
      }
    },
    admitted: bytes => admission.admitted(queue, bytes),
  }
}
