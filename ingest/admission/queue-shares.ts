import type { Problem } from '../../schemas/http/problems.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import { statedDecodedBytes } from '../../shared/queue/request-work.ts'
import { KnownSurfaces } from './known-surfaces.ts'
import { MIN_REQUEST_COST, requestCost } from './request-cost.ts'
import { DrainRate, EXPRESS_COST, type PricedRequest, type RequestSurface, type SurfaceShare } from './surface-share.ts'

/** Reasons for which a request is refused: its surface or its workspace holds too much, or nothing is left for any surface. */
export const REFUSAL_REASONS = [
  'share',
  'workspace_share',
  'full',
  'memory',
  'dead_letters',
  'exceptions',
  'span_stats',
  'large',
] as const
/** One of these reasons. */
export type RefusalReason = (typeof REFUSAL_REASONS)[number]

/** The counters of a queue as Redis has them. */
export interface QueueCounters {
  /** Fields of the hash `flow`. */
  readonly flow: Readonly<Record<string, string>>
  /** Surfaces and their costs, alternately, the highest cost first. */
  readonly shares: readonly string[]
  /** Surfaces and their prices, alternately. Undefined if they were not read. */
  readonly prices: readonly string[] | undefined
}

/** Express cost that all surfaces of a workspace may have together. Above it, further requests of them take the bulk lane. */
const WORKSPACE_EXPRESS_COST = 2 * EXPRESS_COST

/**
 * Part of `EXPRESS_COST` to which a surface in the bulk lane must fall to take the express lane again. Changing lanes often
 * would split its requests into two commits, each with half of them.
 */
const BACK_TO_EXPRESS_PART = 0.25

/** Part of its limit to which a refused surface must fall before it is accepted again, so that it does not flap. */
const REOPEN_PART = 0.8

/** Time after which the workers have measured the requests of a new surface. */
const HISTORY_MS = 30_000

const MIN_RETRY_S = 1
/** The longest delay before the random part, which brings it to 60 s at most. */
const MAX_RETRY_S = 40
const JITTER_PART = 0.5
/** The random part of the delay for large requests, which are written within about a second. */
const LARGE_JITTER_S = 2
/** The longest delay that the backlog of a surface and its workspace adds to the place of its jobs in the bulk lane. */
const MAX_BULK_DELAY_S = 300

/** A request of a surface. Its cost and the lane that it takes are set once its body is there. */
export interface PlacedRequest {
  readonly share: SurfaceShare
  cost: number
  lane: Lane
}

/** The collaborators of `QueueShares`. */
export interface QueueSharesDeps {
  readonly queue: QueueName
  /** The most cost of the requests that are accepted and not finished. */
  readonly maxCost: number
  /** The most bytes that workers decode of one request. */
  readonly decodedLimit: number
  readonly now: () => number
  readonly random: () => number
  readonly onRefused: (reason: RefusalReason) => void
  /** Queues that requests of this one fill. Their shares bound it too, for the workspaces that have something there. */
  readonly filled?: readonly { readonly shares: QueueShares; readonly reason: RefusalReason }[]
}

/**
 * Divides a queue among surfaces by dynamic thresholds, as `FairShares` does within a process: the mean of the unfinished
 * cost of a surface and of its workspace may be as much as the queue has left. One surface alone gets half, and all surfaces
 * of a workspace together get two thirds at most. The shares are in Redis, so they cover all processes. Between two polls a
 * process adds what it accepts itself.
 */
export class QueueShares {
  readonly #deps: QueueSharesDeps
  readonly #surfaces: KnownSurfaces
  readonly #messages: Readonly<Record<RefusalReason, string>>
  #polledCost = 0
  #addedCost = 0
  #addedAtPoll = 0
  #inFlightCost = 0
  #doneCost = 0
  readonly #drain = new DrainRate()
  #polledAtMs = 0
  /** Free cost as the memory of Redis permits it. */
  #memoryFree = Number.POSITIVE_INFINITY
  #payloads = 0
  #bytes = 0

  constructor(deps: QueueSharesDeps) {
    this.#deps = deps
    this.#surfaces = new KnownSurfaces(deps.maxCost, deps.now)
    this.#messages = {
      share: `the surface is over its share of the ${deps.queue} queue; retry after the delay`,
      workspace_share: `the workspace is over its share of the ${deps.queue} queue; retry after the delay`,
      full: `the ${deps.queue} queue is full; retry after the delay`,
      memory: 'the store of the queues is nearly full; retry after the delay',
      large: 'too many requests over 4 MiB of the surface are being stored; retry after the delay',
      dead_letters: 'too many requests of the surface could not be stored; retry after the delay',
      exceptions: 'too many exceptions of the surface wait to be stored; retry after the delay',
      span_stats: 'too many statistics of spans of the surface wait to be stored; retry after the delay',
    }
  }

  /** Cost of the accepted requests that are not finished. */
  get used(): number {
    return this.#polledCost + this.#addedCost + this.#inFlightCost
  }

  /** The accepted requests that are not finished as of the last poll, their bytes and their cost. */
  get backlog(): { readonly payloads: number; readonly bytes: number; readonly cost: number } {
    return { payloads: this.#payloads, bytes: this.#bytes, cost: this.used }
  }

  /** The number of surfaces, those with the highest cost, that the next poll must list. */
  get listedSurfaces(): number {
    return this.#surfaces.listed
  }

  /** Returns the share of a surface. */
  shareOf(surface: RequestSurface): SurfaceShare {
    return this.#surfaces.shareOf(surface)
  }

  /**
   * Decides on the head of a request, by its announced length. Returns INGEST_BACKPRESSURE when the surface is over its
   * share, or undefined.
   */
  refuse(share: SurfaceShare, contentLength: number | undefined): Problem | undefined {
    return this.#refuse(share, contentLength === undefined ? 0 : contentLength * share.costPerByte)
  }

  /** Decides on a whole request, and sets its cost and lane. Returns INGEST_BACKPRESSURE, or undefined. */
  place(request: PlacedRequest, body: PricedRequest): Problem | undefined {
    const { maxCost, decodedLimit, now } = this.#deps
    const { share } = request
    const decoded = statedDecodedBytes(body.contentEncoding, body.body, decodedLimit)
    const cost = requestCost(maxCost, body, decoded, share)
    // The least cost of a request states nothing about the cost of its bytes.
    if (cost > MIN_REQUEST_COST) share.learn(body, decoded, cost)
    const problem = this.#refuse(share, cost)
    if (problem !== undefined) return problem
    const isLong =
      share.outstanding > (share.isBulk ? BACK_TO_EXPRESS_PART * EXPRESS_COST : EXPRESS_COST) ||
      share.workspace.express > WORKSPACE_EXPRESS_COST
    share.isBulk = isLong
    const isUnknown = decoded === undefined && now() - share.firstSeenMs < HISTORY_MS
    request.cost = cost
    request.lane = isLong || cost > EXPRESS_COST || isUnknown ? 'bulk' : 'express'
    return undefined
  }

  /** Returns INGEST_BACKPRESSURE for a large request whose surface already writes as many as it may. */
  refuseLarge(): Problem {
    const { onRefused, random } = this.#deps
    onRefused('large')
    const retryAfterSeconds = MIN_RETRY_S + Math.round(random() * LARGE_JITTER_S)
    return { code: 'INGEST_BACKPRESSURE', message: this.#messages.large, retryAfterSeconds }
  }

  /** Adds a request whose commit begins. */
  begin({ share, cost, lane }: PlacedRequest): void {
    if (lane === 'express') share.workspace.express += cost
    share.inFlight += cost
    share.workspace.outstanding += cost
    this.#inFlightCost += cost
  }

  /** Ends the commit of a request. Its cost counts until a poll includes it if it was `accepted`, else no more. */
  end({ share, cost }: PlacedRequest, accepted: boolean): void {
    share.inFlight -= cost
    this.#inFlightCost -= cost
    if (!accepted) {
      share.workspace.outstanding -= cost
      return
    }
    this.#surfaces.add(share, cost)
    this.#addedCost += cost
  }

  /**
   * Returns the priority of a bulk job. `backlog` is the largest `SurfaceShare.backlog` of a surface in it. The priority is
   * the second in which that work would end, so that surfaces with less work go first and no job waits without
   * end. BullMQ takes 21 bits: the count starts again after 24 days.
   */
  bulkPriority(backlog: number): number {
    const delayS = backlog === 0 ? 0 : Math.min(MAX_BULK_DELAY_S, backlog / this.#drain.perSecond)
    return 1 + (Math.floor(this.#deps.now() / 1_000 + delayS) % 2_097_150)
  }

  /** Notes what the poll that is about to be sent will include. */
  beginPoll(): void {
    this.#surfaces.beginPoll()
    this.#addedAtPoll = this.#addedCost
  }

  /** Takes the reply of the poll. `memoryFree` is the part of the memory of Redis that is left for the queues. */
  endPoll({ flow, shares, prices }: QueueCounters, memoryFree: number): void {
    const now = this.#deps.now()
    const seconds = this.#polledAtMs === 0 ? 0 : Math.max(0.001, (now - this.#polledAtMs) / 1_000)
    this.#polledAtMs = now
    this.#followFlow(flow, seconds)
    this.#surfaces.followShares(shares, this.#polledCost, seconds)
    if (prices !== undefined) this.#surfaces.followPrices(prices)
    this.#memoryFree = memoryFree * this.#deps.maxCost
  }

  #followFlow(flow: Readonly<Record<string, string>>, seconds: number): void {
    const doneCost = Number(flow.doneCost ?? 0)
    const after = Math.max(0, Number(flow.acceptedCost ?? 0) - doneCost)
    const done = Math.max(0, doneCost - this.#doneCost)
    if (seconds > 0) this.#drain.follow({ before: this.#polledCost + this.#addedAtPoll, after, done }, seconds)
    this.#doneCost = doneCost
    this.#polledCost = after
    this.#addedCost -= this.#addedAtPoll
    this.#addedAtPoll = 0
    this.#payloads = Number(flow.acceptedPayloads ?? 0) - Number(flow.donePayloads ?? 0)
    this.#bytes = Number(flow.acceptedBytes ?? 0) - Number(flow.doneBytes ?? 0)
  }

  #refuse(share: SurfaceShare, cost: number): Problem | undefined {
    const reason = this.#reasonToRefuse(share, cost)
    if (reason !== undefined) return this.#problem(reason, share)
    for (const { shares, reason: filledReason } of this.#deps.filled ?? []) {
      const own = shares.used === 0 ? undefined : shares.shareOf(share)
      if (own === undefined || own.workspace.outstanding === 0) continue
      if (shares.#reasonToRefuse(own, 0) !== undefined) return this.#problem(filledReason, own, shares)
    }
    return undefined
  }

  #reasonToRefuse(share: SurfaceShare, cost: number): RefusalReason | undefined {
    const free = this.#free
    const limit = share.isRefused ? REOPEN_PART * free : free
    const own = share.outstanding
    const { backlog } = share
    // A surface with nothing may send a request of any cost, or a request over half of the queue could never be accepted.
    share.isRefused = backlog >= limit || (own > 0 && backlog + cost > limit)
    if (!share.isRefused) return undefined
    if (free > 0) return own > 0 && own + cost >= limit ? 'share' : 'workspace_share'
    return this.#memoryFree <= 0 ? 'memory' : 'full'
  }

  /** Cost that is left for all surfaces. It is not positive when the queue or the memory of Redis is full. */
  get #free(): number {
    return Math.min(this.#deps.maxCost - this.used, this.#memoryFree)
  }

  #problem(reason: RefusalReason, share: SurfaceShare, limited: QueueShares = this): Problem {
    this.#deps.onRefused(reason)
    return {
      code: 'INGEST_BACKPRESSURE',
      message: this.#messages[reason],
      retryAfterSeconds: limited.#retryAfterSeconds(share),
    }
  }

  /**
   * Returns the time until the surface is accepted again at the current rates, with up to half more at random, so that the
   * clients of a surface do not return together (docs/api/backpressure.md#backpressure). The share grows as the queue drains. It
   * is at most twice as long as the backlog has lasted: rates that were measured for less time state nothing about more. Rounded to
   * one of both neighbours at random: always up, a second became two, in which the workers had nothing to do.
   */
  #retryAfterSeconds(share: SurfaceShare): number {
    const excess = share.backlog - REOPEN_PART * this.#free
    const { drain, workspace } = share
    const drainRate = (drain.perSecond + workspace.drain.perSecond) / 2
    const seconds = excess > 0 ? excess / (drainRate + REOPEN_PART * this.#drain.perSecond) : 0
    const lasted = Math.max(drain.backlogSeconds, workspace.drain.backlogSeconds, this.#drain.backlogSeconds)
    const bounded = Math.min(MAX_RETRY_S, Math.max(MIN_RETRY_S, Math.min(seconds, 2 * lasted)))
    const { random } = this.#deps
    return Math.floor(bounded * (1 + JITTER_PART * random()) + random())
  }
}
