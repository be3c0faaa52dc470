import { LRUCache } from 'lru-cache'
import type { SymbolicationRequest } from '../../schemas/queues/symbolication.ts'
import { MIB, MINUTE_MS } from '../../schemas/units.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { shareMember } from '../../shared/queue/queue.ts'
import type { DebugIds } from './debug-ids.ts'

/** A finding is requested once in this period per version and process, however often it is thrown. */
const REQUEST_INTERVAL_MS = 10 * MINUTE_MS
const RECENT_LIMIT = 100_000

/** Limits of the requests of one batch. Further stacks are requested when they are thrown again. */
const MAX_REQUESTS = 500
const MAX_BYTES = 4 * MIB

/** Longest name of a release. */
const MAX_VERSION_LENGTH = 256

/** Matches frames of V8, Firefox and Safari. Frames of Java, Python, Go, .NET and Ruby have no column. */
const LINE_AND_COLUMN = /:\d{1,9}:\d{1,9}\)?(?:\r?\n|$)/

/** Recently requested findings by version. The batches of a pool share them. */
export type RecentStacks = LRUCache<string, true>

/** Creates the cache of recently requested findings. */
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

/** An exception with its stack as it is stored. */
interface ThrownStack {
  readonly findingId: string
  readonly serviceVersion: string
  readonly stacktrace: string
  readonly debugIds: DebugIds
  readonly timeLow: number
  readonly timeHigh: number
}

/**
 * The stacks of a batch to symbolicate, one per finding and version. They count as requested only when their batch is
 * stored, so a batch that is formed again requests them again.
 */
export class StackRequests {
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

  /** Returns whether no stack of this finding and version was noted since `reset`. */
  isNew(findingId: string, serviceVersion: string): boolean {
    return !this.#seen.has(keyOf(findingId, serviceVersion))
  }

  /** Adds the request for a stack unless it was requested recently or has another format. */
  note(source: Pick<PayloadFrame, 'workspaceId' | 'surfaceId' | 'receivedAtMs'>, stack: ThrownStack): void {
    const key = keyOf(stack.findingId, stack.serviceVersion)
    if (this.#seen.has(key)) return
    if (this.#frames.length >= MAX_REQUESTS || this.#bytes >= MAX_BYTES) return
    this.#seen.add(key)
    if (this.#recent.has(key) || !LINE_AND_COLUMN.test(stack.stacktrace)) return
    if (stack.serviceVersion.length > MAX_VERSION_LENGTH) return
    const body = Buffer.from(JSON.stringify(requestOf(stack)))
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
    this.#seen.clear()
    this.#requested.length = 0
    this.#frames.length = 0
    this.#sizes.length = 0
    this.#bytes = 0
    this.#marked = 0
    this.#jobMarked = 0
  }
}

/** The id of a finding includes its workspace and surface. */
function keyOf(findingId: string, serviceVersion: string): string {
  return `${findingId} ${serviceVersion}`
}

function requestOf(stack: ThrownStack): SymbolicationRequest {
  return {
    kind: 'stack',
    findingId: stack.findingId,
    serviceVersion: stack.serviceVersion,
    stacktrace: stack.stacktrace,
    debugIds: Object.fromEntries(stack.debugIds),
    occurredAtUnixNano: String((BigInt(stack.timeHigh) << 32n) | BigInt(stack.timeLow)),
  }
}
