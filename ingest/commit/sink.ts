import type { Problem } from '../../schemas/http/problems.ts'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import type { FairShares } from '../../shared/concurrency/fair-shares.ts'
import { ANSWERED, type AnswerableRequest, type Reply } from '../../shared/http/route.ts'
import type { DurabilityWatch } from '../../shared/queue/durability-watch.ts'
import { LARGE_FRAME_BYTES } from '../../shared/queue/large-values.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import type { TransientError } from '../../shared/runtime/errors.ts'
import type { PlacedRequest, QueueShares } from '../admission/queue-shares.ts'
import type { RequestSurface, SurfaceShare } from '../admission/surface-share.ts'
import type { CommitFailures } from './commit-failures.ts'
import type { WaitingRequest } from './group.ts'
import type { GroupCommit } from './group-commit.ts'
import type { CommitOutcome, Condition } from './payload-writer.ts'

/** One queue as a route sees it. */
export interface Sink {
  /**
   * Decides on the head of a request, before its body is read. Returns INGEST_BACKPRESSURE when the surface is over its
   * share of the queue, and INGEST_INFRA_UNAVAILABLE while Redis could lose what it confirms. A body that is announced with
   * more than `limitBytes` is admitted: it is refused for its size later, because the order of checks is fixed
   * (docs/api/requests.md#order-of-checks).
   */
  admit(surface: RequestSurface, contentLength: number | undefined, limitBytes: number): AdmittedRequest | Problem
}

/** A frame that was stored, with the result of its condition, or the problem of a request that is not stored. */
type Stored = { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly problem: Problem }

/** The collaborators of a sink. */
interface SinkDeps {
  readonly queue: AdmittedQueue
  readonly commits: Readonly<Record<Lane, Pick<GroupCommit, 'enqueue' | 'enqueueAlone'>>>
  /** Commits of frames over 4 MiB, and the slots that bound how many of them this process writes at once. */
  readonly large: { readonly commit: Pick<GroupCommit, 'enqueueAlone'>; readonly slots: FairShares }
  readonly shares: QueueShares
  readonly failures: Pick<CommitFailures, 'report'>
  /** Refuses what would be acknowledged while Redis could lose it. */
  readonly durability: Pick<DurabilityWatch, 'refuse'>
}

/** Creates the sink of a queue. */
export function createSink(deps: SinkDeps): Sink {
  return {
    admit(surface, contentLength, limitBytes) {
      const share = deps.shares.shareOf(surface)
      if (contentLength === undefined || contentLength <= limitBytes) {
        const problem = deps.durability.refuse() ?? deps.shares.refuse(share, contentLength)
        if (problem !== undefined) return problem
      }
      return new AdmittedRequest(deps, share)
    },
  }
}

/**
 * A request from the decision on its head until it is answered. It is a class, because one is made for each request: methods
 * instead of closures.
 */
export class AdmittedRequest implements WaitingRequest, PlacedRequest {
  readonly share: SurfaceShare
  cost = 0
  lane: Lane = 'express'
  readonly #sink: SinkDeps
  #request: AnswerableRequest | undefined
  #reply: Reply | undefined
  /** Resolves the promise of `store`, which replies itself. */
  #settle: ((stored: Stored) => void) | undefined
  #arrivedAtMs = 0
  #hasSlot = false

  constructor(sink: SinkDeps, share: SurfaceShare) {
    this.#sink = sink
    this.share = share
  }

  /**
   * Enqueues the frame of the request, and answers the request: with `reply` and the id of its receipt once Redis has the frame
   * on disk, or with the problem NOT_STORED, and without a receipt, if Redis does not confirm. Answers INGEST_BACKPRESSURE
   * when the surface is over its share, now that the cost of the request is known. Copies the frame, body included, before
   * it returns.
   */
  accept(frame: PayloadFrame, reply: Reply, request: AnswerableRequest): typeof ANSWERED {
    this.#reply = reply
    const problem = this.#enqueue(frame, request)
    if (problem !== undefined) request.refuse(problem)
    return ANSWERED
  }

  /**
   * Enqueues the frame as `accept` does, on a condition if there is one, for a route that replies later. Resolves when Redis has
   * it on disk or its condition has refused it, or with the problem of the request.
   */
  store(frame: PayloadFrame, request: AnswerableRequest, condition?: Condition): Promise<Stored> {
    return new Promise(resolve => {
      this.#settle = resolve
      const problem = this.#enqueue(frame, request, condition)
      if (problem !== undefined) resolve({ ok: false, problem })
    })
  }

  confirmed(receiptId: Buffer, { accepted, result }: CommitOutcome): void {
    const request = this.#request as AnswerableRequest
    this.#end(accepted)
    if (this.#settle === undefined) {
      request.committed('acknowledged', this.#arrivedAtMs, receiptId)
      request.answer(this.#reply as Reply)
    } else {
      if (accepted) request.committed('acknowledged', this.#arrivedAtMs, Buffer.from(receiptId))
      this.#settle({ ok: true, result })
    }
  }

  failed(error: TransientError): void {
    this.#end(false)
    this.#request?.committed('unconfirmed', this.#arrivedAtMs)
    this.#sink.failures.report(this.#sink.queue, error, this.#request)
    if (this.#settle === undefined) this.#request?.refuse(NOT_STORED)
    else this.#settle({ ok: false, problem: NOT_STORED })
  }

  /** Returns the problem of a request whose frame is not enqueued. */
  #enqueue(frame: PayloadFrame, request: AnswerableRequest, condition?: Condition): Problem | undefined {
    const { queue, shares, failures } = this.#sink
    this.#request = request
    this.#arrivedAtMs = frame.receivedAtMs
    // The head was decided on with an estimate, and bodies of one surface may have arrived together.
    const problem = shares.place(this, frame)
    if (problem !== undefined) return problem
    try {
      if (!this.#commit(frame, condition)) return shares.refuseLarge()
    } catch (error) {
      this.#giveSlotBack()
      failures.report(queue, error, request)
      return NOT_STORED
    }
    shares.begin(this)
    return undefined
  }

  /** Returns false when the surface already writes as many large frames as it may. */
  #commit(frame: PayloadFrame, condition: Condition | undefined): boolean {
    const { commits, large } = this.#sink
    if (condition !== undefined) commits[this.lane].enqueueAlone(frame, this, condition)
    else if (frame.body.length <= LARGE_FRAME_BYTES) commits[this.lane].enqueue(frame, this)
    else {
      this.#hasSlot = large.slots.take(this.share.member, 1)
      if (!this.#hasSlot) return false
      large.commit.enqueueAlone(frame, this)
    }
    return true
  }

  #end(isAccepted: boolean): void {
    this.#giveSlotBack()
    this.#sink.shares.end(this, isAccepted)
  }

  #giveSlotBack(): void {
    if (this.#hasSlot) this.#sink.large.slots.give(this.share.member, 1)
    this.#hasSlot = false
  }
}

/** The problem of a request whose commit failed. */
export const NOT_STORED: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'the request could not be stored; send it again',
  retryAfterSeconds: 1,
}
