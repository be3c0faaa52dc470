/** What a group has so far. */
interface GroupSize {
  readonly frames: number
  readonly bytes: number
}

/**
 * The least time from one commit to the next while few requests wait. A commit costs Redis and the edge 0.4 ms of CPU time each,
 * however few requests it has.
 */
const REST_MS = 10

/** How long commits rest after two requests came at once, and how long they do not after a rest that brought none. */
const REMEMBERED_MS = 100

/** A group with as many frames is sent at once. */
const ENOUGH_FRAMES = 16

/** As long as no more requests wait at once than this, commits never rest: each client may wait for its answer to send the next. */
const FEW_REQUESTS = 8

/**
 * A group with this part of the requests that recently waited at once is sent at once. Clients that send again when they are
 * answered make two groups that alternate: one in flight and one that waits.
 */
const ENOUGH_PART = 1 / 2

/**
 * Lets the commits of a lane rest, so that the requests of some milliseconds share one. Only while several clients send, and while
 * that brings requests together: few clients, clients that all wait, and a lane with much to commit never wait for it.
 */
export class CommitRest {
  readonly #enoughBytes: number
  readonly #now: () => number
  #lastBegan = Number.NEGATIVE_INFINITY
  #overlapped = Number.NEGATIVE_INFINITY
  #notBefore = Number.NEGATIVE_INFINITY
  /** Requests of the lane that are not answered. */
  #unanswered = 0
  /** Their maximum in this window of `REMEMBERED_MS`, and in the one before. */
  #most = 0
  #mostBefore = 0
  #windowEndsAt = 0

  /** A group of `enoughBytes` is sent at once. `now` is a clock in ms. */
  constructor(enoughBytes: number, now: () => number) {
    this.#enoughBytes = enoughBytes
    this.#now = now
  }

  /** Counts a request that arrives. `overlaps`: whether a commit is in flight. */
  arrived(overlaps: boolean): void {
    const now = this.#now()
    if (overlaps) this.#overlapped = now
    if (now >= this.#windowEndsAt) {
      this.#mostBefore = now < this.#windowEndsAt + REMEMBERED_MS ? this.#most : 0
      this.#most = 0
      this.#windowEndsAt = now + REMEMBERED_MS
    }
    this.#most = Math.max(this.#most, ++this.#unanswered)
  }

  /** Counts the answers of a group. */
  answered(frames: number): void {
    this.#unanswered -= frames
  }

  /** Notes that a commit begins. */
  began(): void {
    this.#lastBegan = this.#now()
  }

  /** Returns how many ms a group should wait for others, or 0. */
  msBefore(group: GroupSize): number {
    const now = this.#now()
    const restMs = this.#lastBegan + REST_MS - now
    const isWorthIt = now - this.#overlapped < REMEMBERED_MS && now >= this.#notBefore
    return restMs > 0 && isWorthIt && !this.isEnough(group) ? restMs : 0
  }

  /** Whether a group is to be sent at once. */
  isEnough({ frames, bytes }: GroupSize): boolean {
    const most = Math.max(this.#most, this.#mostBefore)
    if (most <= FEW_REQUESTS || bytes >= this.#enoughBytes) return true
    return frames >= Math.min(ENOUGH_FRAMES, Math.ceil(most * ENOUGH_PART))
  }

  /** Notes that a rest has ended with this many frames more. */
  ended(frames: number): void {
    if (frames === 0) this.#notBefore = this.#now() + REMEMBERED_MS
  }
}
