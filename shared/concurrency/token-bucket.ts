import { LRUCache } from 'lru-cache'

/** Capacity of a bucket, and the time in which an empty one is full again. */
interface BucketSize {
  readonly capacity: number
  readonly refillMs: number
}

/** An amount that is refilled continuously up to a capacity. It begins full. */
export class TokenBucket {
  readonly #size: BucketSize
  readonly #now: () => number
  #tokens: number
  #filledAtMs: number

  constructor(size: BucketSize, now: () => number = Date.now) {
    this.#size = size
    this.#now = now
    this.#tokens = size.capacity
    this.#filledAtMs = now()
  }

  /** What is left. It is negative after more was taken than there was. */
  get left(): number {
    const { capacity, refillMs } = this.#size
    const nowMs = this.#now()
    const passedMs = Math.max(0, nowMs - this.#filledAtMs)
    this.#tokens = Math.min(capacity, this.#tokens + (passedMs * capacity) / refillMs)
    this.#filledAtMs = nowMs
    return this.#tokens
  }

  /** Returns 0 if the amount may be taken now, else how long to wait for it. An amount over the capacity needs a full bucket. */
  waitMs(amount: number): number {
    const { capacity, refillMs } = this.#size
    const missing = Math.min(amount, capacity) - this.left
    return missing <= 0 ? 0 : (missing / capacity) * refillMs
  }

  /** Takes the amount, also if less is left: the cost of work may be known only after it. */
  take(amount: number): void {
    this.#tokens = this.left - amount
  }

  /** Gives back what was taken for work that costs nothing. */
  giveBack(amount: number): void {
    this.#tokens += amount
  }
}

/** Owners whose bucket is remembered. */
const MAX_OWNERS = 10_000

/** Gives each owner a bucket of the same size. */
export class TokenBuckets {
  readonly #size: BucketSize
  readonly #now: () => number
  readonly #buckets = new LRUCache<string, TokenBucket>({ max: MAX_OWNERS })

  constructor(size: BucketSize, now: () => number = Date.now) {
    this.#size = size
    this.#now = now
  }

  /** Returns the bucket of an owner. */
  of(owner: string): TokenBucket {
    let bucket = this.#buckets.get(owner)
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#size, this.#now)
      this.#buckets.set(owner, bucket)
    }
    return bucket
  }
}
