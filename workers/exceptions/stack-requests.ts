import { LRUCache } from 'lru-cache'
import type { StackRequest } from '../../schemas/queues/symbolication.ts'
import { MIB, MINUTE_MS } from '../../schemas/units.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { shareMember } from '../../shared/queue/queue.ts'
import type { DebugIds } from './debug-ids.ts'

/** A variant is requested once in this period by each process, however often it is thrown, and once a day. */
const REQUEST_INTERVAL_MS = 10 * MINUTE_MS
const RECENT_LIMIT = 100_000

/** Limits of the requests of one batch. Further stacks are requested when they are thrown again. */
const MAX_REQUESTS = 500
const MAX_BYTES = 4 * MIB

/** Longest name of a release. */
const MAX_VERSION_LENGTH = 256

/** Matches frames of V8, Firefox and Safari. Frames of Java, Python, Go, .NET and Ruby have no column. */
const LINE_AND_COLUMN = /:\d{1,9}:\d{1,9}\)?(?:\r?\n|$)/

/** Recently requested variants by day. The batches of a pool share them. */
export type RecentStacks = LRUCache<string, true>

/** Creates the cache of recently requested variants. */
export function createRecentStacks(now: () => number = Date.now): RecentStacks {
  return new LRUCache<string, true>({
    // `max` would allocate memory for all entries at once: 4 MiB in 20 ms before the first exception.
    maxSize: RECENT_LIMIT,
    sizeCalculation: () => 1,
    // An entry is stale once it is older than `ttl`.
    ttl: REQUEST_INTERVAL_MS - 1,
    ttlResolution: 0,
    perf: { now },
  })
}

/** An exception as it is stored. */
interface ThrownStack extends Omit<StackRequest, 'kind' | 'debugIds'> {
  readonly debugIds: DebugIds
}

/**
 * The stacks of a batch to symbolicate, one of each variant and day. They count as requested only when their batch is
 * stored, so a batch that is formed again requests them again.
 */
export class StackRequests {
  /** Workspaces by the variants of the batch. A refused payload leaves its variants behind. */
  readonly variants = new Map<string, string>()
  readonly #recent: RecentStacks
  readonly #seen = new Set<string>()
  readonly #requested: string[] = []
  readonly #frames: PayloadFrame[] = []
  readonly #sizes: number[] = []
  #bytes = 0
  #marked = 0
  #jobMarked = 0

  constructor(recent: RecentStacks) {
    this.#recent = recent
  }

  /** Requests as payload frames for the queue `symbolication`. */
  get frames(): readonly PayloadFrame[] {
    return this.#frames
  }

  /** Begins a payload. `rewind` returns to this state. */
  mark(): void {
    this.#marked = this.#frames.length
  }

  /** Removes the requests of the current payload. */
  rewind(): void {
    this.#frames.length = this.#marked
    for (const size of this.#sizes.splice(this.#marked)) this.#bytes -= size
    for (const key of this.#requested.splice(this.#marked)) this.#seen.delete(key)
  }

  /** Begins a job of several payloads. `rewindJob` returns to this state. */
  markJob(): void {
    this.#jobMarked = this.#frames.length
  }

  /** Removes the requests of the current job. */
  rewindJob(): void {
    this.#marked = this.#jobMarked
    this.rewind()
  }

  /** Returns whether no stack with this key, which names variant and day, was noted since `reset`. */
  isNew(key: string): boolean {
    return !this.#seen.has(key)
  }

  /** Adds the request for a stack unless it was requested recently or has another format. */
  note(
    source: Pick<PayloadFrame, 'workspaceId' | 'surfaceId' | 'receivedAtMs'>,
    key: string,
    stack: ThrownStack,
  ): void {
    if (this.#seen.has(key)) return
    if (this.#frames.length >= MAX_REQUESTS || this.#bytes >= MAX_BYTES) return
    this.#seen.add(key)
    if (this.#recent.has(key) || !LINE_AND_COLUMN.test(stack.stacktrace)) return
    if (stack.serviceVersion.length > MAX_VERSION_LENGTH) return
    const request: StackRequest = { kind: 'stack', ...stack, debugIds: Object.fromEntries(stack.debugIds) }
    const body = Buffer.from(JSON.stringify(request))
    this.#requested.push(key)
    this.#sizes.push(body.length)
    this.#bytes += body.length
    this.#frames.push({
      workspaceId: source.workspaceId,
      surfaceId: source.surfaceId,
      receivedAtMs: source.receivedAtMs,
      contentType: 'application/json',
      contentEncoding: 'identity',
      attributes: '',
      body,
    })
  }

  /** Marks the requests as sent, without those of surfaces whose requests were left out (`shareMember`). */
  finished(leftOut: ReadonlySet<string>): void {
    for (const [i, key] of this.#requested.entries()) {
      const frame = this.#frames[i]
      if (frame !== undefined && !leftOut.has(shareMember(frame))) this.#recent.set(key, true)
    }
  }

  /** Removes all requests. */
  reset(): void {
    this.variants.clear()
    this.#seen.clear()
    this.#requested.length = 0
    this.#frames.length = 0
    this.#sizes.length = 0
    this.#bytes = 0
    this.#marked = 0
    this.#jobMarked = 0
  }
}
