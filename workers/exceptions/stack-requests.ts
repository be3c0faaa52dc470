import { LRUCache } from 'lru-cache'
import type { SymbolicationRequest } from '../../schemas/queues/symbolication.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import type { DebugIds } from './debug-ids.ts'

/** A finding that is thrown a million times is asked for once in this time, per version and process. */
const ASKED_AGAIN_AFTER_MS = 10 * 60_000
const RECENT_LIMIT = 100_000

/** What one batch asks for; the rest is asked for when it is thrown again. */
const MAX_REQUESTS = 500
const MAX_BYTES = 4 * 1024 * 1024

/** No release has a longer name. */
const MAX_VERSION_LENGTH = 256

/** A frame of V8, Firefox or Safari ends with line and column; those of Java, Python, Go, .NET and Ruby do not. */
const LINE_AND_COLUMN = /:\d{1,9}:\d{1,9}\)?(?:\r?\n|$)/

/** Findings that were asked for lately, by version. Shared by the batches of a pool. */
export type RecentStacks = LRUCache<string, true>

export function createRecentStacks(now: () => number = Date.now): RecentStacks {
  return new LRUCache<string, true>({
    // `max` would allocate room for every entry at once: 4 MiB in 20 ms, before the first exception.
    maxSize: RECENT_LIMIT,
    sizeCalculation: () => 1,
    // An entry is stale once it is older than `ttl`.
    ttl: ASKED_AGAIN_AFTER_MS - 1,
    ttlResolution: 0,
    perf: { now },
  })
}

/** An exception with its stack, as it is stored. */
export interface ThrownStack {
  readonly findingId: string
  readonly serviceVersion: string
  readonly stacktrace: string
  readonly debugIds: DebugIds
  readonly timeLow: number
  readonly timeHigh: number
}

/**
 * The stacks of a batch that are to be symbolicated: one per finding and version. They count as asked for only when
 * their batch is stored, so that a batch formed again asks again.
 */
export class StackRequests {
  readonly #recent: RecentStacks
  readonly #seen = new Set<string>()
  readonly #asked: string[] = []
  readonly #frames: PayloadFrame[] = []
  readonly #sizes: number[] = []
  #bytes = 0
  #marked = 0

  constructor(recent: RecentStacks) {
    this.#recent = recent
  }

  get frames(): readonly PayloadFrame[] {
    return this.#frames
  }

  /** Begins a payload: `rewind` comes back to here. */
  mark(): void {
    this.#marked = this.#frames.length
  }

  rewind(): void {
    this.#frames.length = this.#marked
    for (const size of this.#sizes.splice(this.#marked)) this.#bytes -= size
    for (const key of this.#asked.splice(this.#marked)) this.#seen.delete(key)
  }

  note(origin: Pick<PayloadFrame, 'workspaceId' | 'surfaceId' | 'receivedAtMs'>, stack: ThrownStack): void {
    // The id of a finding is of its workspace and surface.
    const key = `${stack.findingId} ${stack.serviceVersion}`
    if (this.#seen.has(key)) return
    if (this.#frames.length >= MAX_REQUESTS || this.#bytes >= MAX_BYTES) return
    this.#seen.add(key)
    if (this.#recent.has(key) || !LINE_AND_COLUMN.test(stack.stacktrace)) return
    if (stack.serviceVersion.length > MAX_VERSION_LENGTH) return
    const body = Buffer.from(JSON.stringify(requestOf(stack)))
    this.#asked.push(key)
    this.#sizes.push(body.length)
    this.#bytes += body.length
    this.#frames.push({
      workspaceId: origin.workspaceId,
      surfaceId: origin.surfaceId,
      receivedAtMs: origin.receivedAtMs,
      contentType: 'application/json',
      contentEncoding: 'identity',
      attributes: '',
      body,
    })
  }

  /** The requests are on their way. */
  finished(): void {
    for (const key of this.#asked) this.#recent.set(key, true)
  }

  reset(): void {
    this.#seen.clear()
    this.#asked.length = 0
    this.#frames.length = 0
    this.#sizes.length = 0
    this.#bytes = 0
    this.#marked = 0
  }
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
