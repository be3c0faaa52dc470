import type { ContentEncoding, ContentType } from '../../shared/queue/payload-frame.ts'
import { shareMember } from '../../shared/queue/queue.ts'

/**
 * Cost that a surface may have in a queue before its requests take the bulk lane: about 0.1 s of one worker
 * (`WORK_PER_MS`). A request of a higher cost takes the bulk lane in any case.
 */
export const EXPRESS_COST = 16 * 1024 * 1024

/** One surface in one queue. */
export class SurfaceShare {
  readonly workspaceId: string
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
  /** Cost that the workers finish per second; a moving average. */
  drainRate = 0
  isRefused = false
  /** Whether its requests take the bulk lane. */
  isBulk = false

  #recentCost: number
  #recentBytes = 1

  /** `costPerByte` is what a byte of a new surface is assumed to cost. */
  constructor(
    { workspaceId, surfaceId }: RequestSurface,
    workspace: WorkspaceShare,
    costPerByte: number,
    firstSeenMs: number,
  ) {
    this.workspaceId = workspaceId
    this.workspace = workspace
    this.member = shareMember({ workspaceId, surfaceId })
    this.#recentCost = costPerByte
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
  get held(): number {
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
  /** Cost that the workers finish per second; a moving average. */
  drainRate = 0
  /** Cost that was finished before the poll that is being read. */
  drained = 0
  /** Cost of its surfaces that take the express lane as of the last poll, and of the express requests since. */
  express = 0
}

/** The place of an accepted request: what it adds to the share of its surface. */
export interface RequestPlace {
  readonly share: Pick<SurfaceShare, 'member' | 'held'>
  readonly cost: number
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

/** Returns a moving average in which the last five seconds have half of the weight. It begins with the first value. */
export function average(old: number, value: number, seconds: number): number {
  if (old === 0) return value
  const keep = 0.5 ** (seconds / 5)
  return old * keep + value * (1 - keep)
}
