import { MIB } from '../../schemas/units.ts'
import type { ContentEncoding, ContentType } from '../../shared/queue/payload-frame.ts'
import { shareMember } from '../../shared/queue/queue.ts'

/**
 * Cost that a surface may have in a queue before its requests take the bulk lane: about 0.1 s of one worker
 * (`WORK_PER_MS`). A request of a higher cost takes the bulk lane in any case.
 */
export const EXPRESS_COST = 16 * MIB

/** One surface in one queue. */
export class SurfaceShare implements RequestSurface {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly workspace: WorkspaceShare
  /** Member of the surface in the sorted sets of the queue. */
  readonly member: string
  readonly firstSeenMs: number
  price = 1
  /** Decoded size over encoded size of recent compressed bodies; 0 if unknown. */
  ratio = 0
  /** Cost in Redis as of the last poll. */
  polled = 0
  /** Cost that this process has added since then. */
  added = 0
  /** The part of `added` that the poll in progress includes. */
  addedAtPoll = 0
  /** Cost of commits whose outcome is open. */
  inFlight = 0
  readonly drain = new DrainRate()
  isRefused = false
  /** Whether its requests take the bulk lane. */
  isBulk = false

  /** A byte of a new surface is assumed to cost one. */
  #recentCost = 1
  #recentBytes = 1

  constructor({ workspaceId, surfaceId }: RequestSurface, workspace: WorkspaceShare, firstSeenMs: number) {
    this.workspaceId = workspaceId
    this.surfaceId = surfaceId
    this.workspace = workspace
    this.member = shareMember({ workspaceId, surfaceId })
    this.firstSeenMs = firstSeenMs
  }

  /** Cost of the requests that are not finished. */
  get outstanding(): number {
    return this.polled + this.added + this.inFlight
  }

  /**
   * The mean of what the surface and its workspace have, to which thresholds and priorities apply. So a workspace gains
   * nothing by spreading its work over many surfaces.
   */
  get backlog(): number {
    return (this.outstanding + this.workspace.outstanding) / 2
  }

  /** What a byte of recent requests has cost. */
  get costPerByte(): number {
    return this.#recentCost / this.#recentBytes
  }

  /** Updates the averages with a request of this cost. `decoded` is its decoded size, if the body states one. */
  learn({ body, contentEncoding }: PricedRequest, decoded: number | undefined, cost: number): void {
    const bytes = body.length
    this.#recentCost += (cost - this.#recentCost) * AVERAGE_PART
    this.#recentBytes += (bytes - this.#recentBytes) * AVERAGE_PART
    if (decoded === undefined || contentEncoding === 'identity') return
    this.ratio += (decoded / bytes - this.ratio) * AVERAGE_PART
  }
}

/** All surfaces of one workspace in one queue. */
export class WorkspaceShare {
  /** Cost of the requests of all its surfaces that are not finished. */
  outstanding = 0
  readonly drain = new DrainRate()
  /** Cost of its surfaces that take the express lane as of the last poll, and of the express requests since. */
  express = 0
}

/** The surface that a request comes from. */
export interface RequestSurface {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** A request as its cost is estimated. */
export interface PricedRequest {
  readonly contentType: ContentType
  readonly contentEncoding: ContentEncoding
  readonly body: Buffer
}

/** Weight of the latest request in the moving averages of a surface. */
const AVERAGE_PART = 1 / 8

/**
 * How fast the workers finish a backlog, a cost above `EXPRESS_COST`. Time without one does not count, because work that does not
 * wait is finished as fast as it arrives. An average over all time told the first burst after a quiet time to stay away for ten
 * times as long as its backlog lasted.
 */
export class DrainRate {
  /** Cost that was finished of a backlog, and in how much time. The last five seconds of a backlog have half of the weight. */
  #done = 0
  #seconds = 0
  #backlogSeconds = 0

  /** Takes the time between two polls, in which the cost fell from `before` to `after` by what was finished. */
  follow({ before, after, done }: { before: number; after: number; done: number }, seconds: number): void {
    this.#backlogSeconds = after > EXPRESS_COST ? this.#backlogSeconds + seconds : 0
    if (before <= EXPRESS_COST) return
    const keep = 0.5 ** (seconds / 5)
    this.#done = this.#done * keep + done
    this.#seconds = this.#seconds * keep + seconds
  }

  /** Cost that is finished per second; 0 if there was no backlog yet. */
  get perSecond(): number {
    return this.#seconds === 0 ? 0 : this.#done / this.#seconds
  }

  /** How long there has been a backlog, until the last poll. */
  get backlogSeconds(): number {
    return this.#backlogSeconds
  }
}
