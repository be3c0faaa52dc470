import type { Problem } from '../../schemas/http/problems.ts'
import type { IngestQueue } from '../../schemas/queues/names.ts'
import type { Reply } from '../../shared/http/route.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { Admission } from '../admission/admission.ts'
import type { CommitFailures } from './commit-failures.ts'
import type { GroupCommit } from './group-commit.ts'

/** One queue as a route sees it: the queue refuses a request, or accepts its frame. */
export interface FrameSink {
  /** Returns INGEST_BACKPRESSURE when the queue takes no more requests, or undefined. */
  refuse(): Problem | undefined
  /**
   * Enqueues the frame. Resolves once Redis has it on disk, with `reply` and the id of the request's receipt. If Redis
   * does not confirm, resolves with the problem NOT_STORED, and without a receipt. Copies the frame, body included,
   * before it returns.
   */
  accept(frame: PayloadFrame, reply: Reply, renderProblem: (problem: Problem) => Reply): Promise<Reply>
}

/** The collaborators of a frame sink. */
export interface FrameSinkDeps {
  readonly commit: Pick<GroupCommit, 'enqueue'>
  readonly admission: Pick<Admission, 'refuse' | 'admitted'>
  readonly failures: Pick<CommitFailures, 'report'>
}

/** Creates the sink of a queue that is written by group commits. */
export function createFrameSink(queue: IngestQueue, { commit, admission, failures }: FrameSinkDeps): FrameSink {
  return {
    refuse: () => admission.refuse(queue),
    async accept(frame, reply, renderProblem) {
      const bytes = frame.body.length
      let receiptId: string
      try {
        const enqueued = commit.enqueue(frame)
        receiptId = enqueued.receiptId
        await enqueued.confirmed
      } catch (error) {
        failures.report(queue, error)
        return renderProblem(NOT_STORED)
      }
      admission.admitted(queue, bytes)
      return withReceipt(reply, receiptId)
    },
  }
}

/** Returns the reply with the id of the request's receipt. */
export function withReceipt(reply: Reply, receiptId: string): Reply {
  return { ...reply, receiptId }
}

/** The problem of a request whose commit failed. */
export const NOT_STORED: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'the request could not be stored; send it again',
  retryAfterSeconds: 1,
}
