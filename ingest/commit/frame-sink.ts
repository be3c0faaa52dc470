import type { Problem } from '../../schemas/http/problems.ts'
import type { IngestQueue } from '../../schemas/queues/names.ts'
import type { CountedRequest, Reply } from '../../shared/http/route.ts'
import type { DurabilityWatch } from '../../shared/queue/durability-watch.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Placement, QueueShares } from '../admission/queue-shares.ts'
import type { RequestSurface } from '../admission/surface-share.ts'
import type { CommitFailures } from './commit-failures.ts'
import type { EnqueuedFrame, GroupCommit } from './group-commit.ts'
import { LARGE_FRAME_BYTES, type LargeCommit } from './large-commit.ts'

/** One queue as a route sees it: the queue refuses a request, or accepts its frame. */
export interface FrameSink {
  /**
   * Decides on the head of a request, before its body is read. Returns INGEST_BACKPRESSURE when the surface is over its
   * share of the queue, INGEST_INFRA_UNAVAILABLE while Redis could lose what it confirms, or undefined.
   */
  refuse(surface: RequestSurface, contentLength: number | undefined): Problem | undefined
  /**
   * Enqueues the frame. Resolves once Redis has it on disk, with `reply` and the id of the request's receipt. If Redis
   * does not confirm, resolves with the problem NOT_STORED, and without a receipt. Returns the problem
   * INGEST_BACKPRESSURE when the surface is over its share, now that the cost of the request is known. Copies the frame,
   * body included, before it returns.
   */
  accept(
    frame: PayloadFrame,
    reply: Reply,
    renderProblem: (problem: Problem) => Reply,
    request: CountedRequest,
  ): Reply | Promise<Reply>
}

/** The collaborators of a frame sink. */
export interface FrameSinkDeps {
  readonly commits: Readonly<Record<Lane, Pick<GroupCommit, 'enqueue'>>>
  readonly largeCommit: Pick<LargeCommit, 'enqueue'>
  readonly shares: QueueShares
  readonly failures: Pick<CommitFailures, 'report'>
  /** Refuses what would be acknowledged while Redis could lose it. */
  readonly durability: Pick<DurabilityWatch, 'refuse'>
}

/** Creates the sink of a queue that is written by group commits, and in pieces if a frame is large. */
export function createFrameSink(queue: IngestQueue, deps: FrameSinkDeps): FrameSink {
  const { commits, largeCommit, shares, failures, durability } = deps

  async function confirm(
    enqueued: EnqueuedFrame,
    place: Placement,
    arrivedAtMs: number,
    reply: Reply,
    renderProblem: (problem: Problem) => Reply,
    request: CountedRequest,
  ): Promise<Reply> {
    try {
      await enqueued.confirmed
      if (durability.refuse() !== undefined) throw new TransientError(NOT_KNOWN_DURABLE)
    } catch (error) {
      shares.end(place, false)
      request.committed('unconfirmed', arrivedAtMs)
      failures.report(queue, error, request)
      return renderProblem(NOT_STORED)
    }
    shares.end(place, true)
    request.committed('acknowledged', arrivedAtMs)
    return withReceipt(reply, enqueued.receiptId)
  }

  return {
    refuse(surface, contentLength) {
      return durability.refuse() ?? shares.refuse(surface, contentLength)
    },
    accept(frame, reply, renderProblem, request) {
      const place = durability.refuse() ?? shares.place(frame, frame)
      if ('code' in place) return renderProblem(place)
      let enqueued: EnqueuedFrame | undefined
      try {
        const isLarge = frame.body.length > LARGE_FRAME_BYTES
        enqueued = isLarge ? largeCommit.enqueue(frame, place) : commits[place.lane].enqueue(frame, place)
      } catch (error) {
        failures.report(queue, error, request)
        return renderProblem(NOT_STORED)
      }
      if (enqueued === undefined) return renderProblem(shares.refuseLarge())
      shares.begin(place)
      return confirm(enqueued, place, frame.receivedAtMs, reply, renderProblem, request)
    },
  }
}

/** Returns the reply with the id of the request's receipt. */
export function withReceipt(reply: Reply, receiptId: string): Reply {
  return { ...reply, receiptId }
}

/** The error of a commit that was confirmed by a server which could lose it, or of which nothing is known yet. */
export const NOT_KNOWN_DURABLE = 'redis has confirmed the write and could lose it'

/** The problem of a request whose commit failed. */
export const NOT_STORED: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'the request could not be stored; send it again',
  retryAfterSeconds: 1,
}
