import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { CountedRequest } from '../../shared/http/route.ts'
import type { DurabilityWatch } from '../../shared/queue/durability-watch.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { QueueShares } from '../admission/queue-shares.ts'
import type { RequestSurface } from '../admission/surface-share.ts'
import type { CommitFailures } from './commit-failures.ts'
import type { ConditionalCommit } from './conditional-commit.ts'
import { type Condition, NOT_KNOWN_DURABLE } from './fenced-commit.ts'
import { NOT_STORED } from './frame-sink.ts'

/** The result of the condition, or the problem of a request that is not stored. */
type Stored = { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly problem: Problem }

/** One queue as a route sees it whose frames are accepted on a condition. */
export interface ConditionalSink {
  /** Decides on the head of a request, as `FrameSink.refuse` does. */
  refuse(surface: RequestSurface, contentLength: number | undefined): Problem | undefined
  /**
   * Commits a frame on a condition. Copies the frame, body included, before it returns. Resolves with the problem
   * INGEST_BACKPRESSURE when the surface is over its share, and with NOT_STORED when Redis did not confirm.
   */
  store(frame: PayloadFrame, condition: Condition, request: CountedRequest): Promise<Stored>
}

/** The collaborators of a conditional sink. */
interface ConditionalSinkDeps {
  readonly commit: Pick<ConditionalCommit, 'commit'>
  readonly shares: QueueShares
  readonly failures: Pick<CommitFailures, 'report'>
  /** Refuses what would be acknowledged while Redis could lose it. */
  readonly durability: Pick<DurabilityWatch, 'refuse'>
}

/** Creates the sink of a queue that is written by conditional commits. */
export function createConditionalSink(
  queue: AdmittedQueue,
  { commit, shares, failures, durability }: ConditionalSinkDeps,
): ConditionalSink {
  return {
    refuse(surface, contentLength) {
      return durability.refuse() ?? shares.refuse(surface, contentLength)
    },
    async store(frame, condition, request) {
      const place = durability.refuse() ?? shares.place(frame, frame)
      if ('code' in place) return { ok: false, problem: place }
      shares.begin(place)
      try {
        const { accepted, result, receiptId } = await commit.commit(frame, place, condition)
        if (durability.refuse() !== undefined) throw new TransientError(NOT_KNOWN_DURABLE)
        shares.end(place, accepted)
        if (accepted) request.committed('acknowledged', frame.receivedAtMs, receiptId)
        return { ok: true, result }
      } catch (error) {
        shares.end(place, false)
        request.committed('unconfirmed', frame.receivedAtMs)
        failures.report(queue, error, request)
        return { ok: false, problem: NOT_STORED }
      }
    },
  }
}
