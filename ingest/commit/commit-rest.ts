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

/** A share of the connected clients that is sent at once, because the others may be waiting for these answers. */
const ENOUGH_CLIENTS = 1 / 8

/**
 * Lets the commits of a lane rest, so that the requests of some milliseconds share one. Only while several clients send, and while
 * that brings requests together: a client alone, clients that all wait, and a lane with much to commit never wait for it.
 */
export class CommitRest {
  readonly #clients: () => number
  readonly #enoughBytes: number
  readonly #now: () => number
  #lastBegan = Number.NEGATIVE_INFINITY
  #overlapped = Number.NEGATIVE_INFINITY
  #notBefore = Number.NEGATIVE_INFINITY

  /** `clients` returns the number of open connections. A group of `enoughBytes` is sent at once. */
  constructor(clients: () => number, enoughBytes: number, now: () => number = () => performance.now()) {
    this.#clients = clients
    this.#enoughBytes = enoughBytes
    this.#now = now
  }

  /** Notes that a request came while a commit was in flight. */
  overlapped(): void {
    this.#overlapped = this.#now()
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
    return bytes >= this.#enoughBytes || frames >= Math.min(ENOUGH_FRAMES, Math.ceil(this.#clients() * ENOUGH_CLIENTS))
  }

  /** Notes that a rest has ended with this many frames more. */
  ended(frames: number): void {
    if (frames === 0) this.#notBefore = this.#now() + REMEMBERED_MS
  }
}
