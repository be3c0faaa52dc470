import type { Problem } from '../../schemas/http/problems.ts'
import type { IngestQueue } from '../../schemas/queues/names.ts'
import { ANSWERED, type AnswerableRequest, type Reply } from '../../shared/http/route.ts'
import type { DurabilityWatch } from '../../shared/queue/durability-watch.ts'
import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Placement, QueueShares } from '../admission/queue-shares.ts'
import type { RequestSurface } from '../admission/surface-share.ts'
import type { CommitFailures } from './commit-failures.ts'
import { NOT_KNOWN_DURABLE } from './fenced-commit.ts'
import type { WaitingRequest } from './group.ts'
import type { GroupCommit } from './group-commit.ts'
import type { LargeCommit } from './large-commit.ts'

/** One queue as a route sees it: the queue refuses a request, or accepts its frame. */
export interface FrameSink {
  /**
   * Decides on the head of a request, before its body is read. Returns INGEST_BACKPRESSURE when the surface is over its
   * share of the queue, INGEST_INFRA_UNAVAILABLE while Redis could lose what it confirms, or undefined.
   */
  refuse(surface: RequestSurface, contentLength: number | undefined): Problem | undefined
  /**
   * Enqueues the frame of a request, and answers the request: with `reply` and the id of its receipt once Redis has the frame
   * on disk, or with the problem NOT_STORED, and without a receipt, if Redis does not confirm. Answers INGEST_BACKPRESSURE
   * when the surface is over its share, now that the cost of the request is known. Copies the frame, body included, before
   * it returns.
   */
  accept(frame: PayloadFrame, reply: Reply, request: AnswerableRequest): typeof ANSWERED
}

/** The collaborators of a frame sink. */
interface FrameSinkDeps {
  readonly queue: IngestQueue
  readonly commits: Readonly<Record<Lane, Pick<GroupCommit, 'enqueue'>>>
  readonly largeCommit: Pick<LargeCommit, 'enqueue'>
  readonly shares: QueueShares
  readonly failures: Pick<CommitFailures, 'report'>
  /** Refuses what would be acknowledged while Redis could lose it. */
  readonly durability: Pick<DurabilityWatch, 'refuse'>
}

/** Creates the sink of a queue that is written by group commits, and in pieces if a frame is large. */
export function createFrameSink(deps: FrameSinkDeps): FrameSink {
  const { queue, commits, largeCommit, shares, failures, durability } = deps

  /** Returns the problem of a request whose frame is not enqueued. */
  function enqueue(frame: PayloadFrame, reply: Reply, request: AnswerableRequest): Problem | undefined {
    const place = durability.refuse() ?? shares.place(frame, frame)
    if ('code' in place) return place
    const waiting = new SinkRequest(deps, request, reply, place, frame.receivedAtMs)
    try {
      if (frame.body.length <= LARGE_FRAME_BYTES) commits[place.lane].enqueue(frame, place, waiting)
      else if (!largeCommit.enqueue(frame, place, waiting)) return shares.refuseLarge()
    } catch (error) {
      failures.report(queue, error, request)
      return NOT_STORED
    }
    shares.begin(place)
    return undefined
  }

  return {
    refuse(surface, contentLength) {
      return durability.refuse() ?? shares.refuse(surface, contentLength)
    },
    accept(frame, reply, request) {
      const problem = enqueue(frame, reply, request)
      if (problem !== undefined) request.refuse(problem)
      return ANSWERED
    },
  }
}

/** A request whose frame is enqueued. It is a class, because one is made for each request: methods instead of closures. */
class SinkRequest implements WaitingRequest {
  readonly #sink: FrameSinkDeps
  readonly #request: AnswerableRequest
  readonly #reply: Reply
  readonly #place: Placement
  readonly #arrivedAtMs: number

  constructor(sink: FrameSinkDeps, request: AnswerableRequest, reply: Reply, place: Placement, arrivedAtMs: number) {
    this.#sink = sink
    this.#request = request
    this.#reply = reply
    this.#place = place
    this.#arrivedAtMs = arrivedAtMs
  }

  confirmed(receiptId: Buffer): void {
    const { durability, shares } = this.#sink
    if (durability.refuse() !== undefined) {
      this.failed(new TransientError(NOT_KNOWN_DURABLE))
      return
    }
    shares.end(this.#place, true)
    this.#request.committed('acknowledged', this.#arrivedAtMs, receiptId)
    this.#request.answer(this.#reply)
  }

  failed(error: TransientError): void {
    const { queue, shares, failures } = this.#sink
    shares.end(this.#place, false)
    this.#request.committed('unconfirmed', this.#arrivedAtMs)
    failures.report(queue, error, this.#request)
    this.#request.refuse(NOT_STORED)
  }
}

/** The problem of a request whose commit failed. */
export const NOT_STORED: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'the request could not be stored; send it again',
  retryAfterSeconds: 1,
}
