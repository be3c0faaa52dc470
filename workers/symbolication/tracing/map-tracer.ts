import { LRUCache } from 'lru-cache'
import { FairSlots } from '../../../shared/concurrency/fair-slots.ts'
import { TokenBuckets } from '../../../shared/concurrency/token-bucket.ts'
import type { StreamedObject } from '../../../shared/object-store/types.ts'
import type { CacheCounts } from '../../../shared/runtime/cache-counts.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { type MapGuards, UNUSABLE_FOR_MS } from './map-guards.ts'
import type { OriginalPosition, Position } from './parsed-map.ts'
import { type DeadChild, TraceChild } from './trace-child.ts'
import type { TraceAnswer } from './trace-messages.ts'

/** Time that a question may take in the process. A map that takes longer is unusable. */
export const TRACE_DEADLINE_MS = 30_000
/** Time that a question may spend on finding the functions of sources. */
const INDEXING_LIMIT_MS = 5_000
/** Time of the process that one workspace may use in a minute. */
const MS_PER_MINUTE = 20_000
const UNUSABLE_LIMIT = 10_000

/** Dependencies of a tracer. */
interface MapTracerDeps {
  /** Opens a map, or returns undefined if it does not exist. */
  readonly openMap: (mapKey: string) => Promise<Pick<StreamedObject, 'size' | 'body'> | undefined>
  readonly guards: MapGuards
  readonly logger: Logger
  readonly now?: () => number
}

/** Limits of a tracer. */
export interface MapTracerOptions {
  /** Memory limit of the process: the heap with parsed maps, the map that is parsed, and working memory. */
  readonly heapBytes: number
  /** Memory for parsed maps; at most a quarter of the heap. */
  readonly cacheBytes: number
  readonly deadlineMs?: number
  readonly indexingLimitMs?: number
  readonly msPerMinute?: number
  /** Memory of one parsed map. By default what the heap leaves for it. */
  readonly mapLimitBytes?: number
}

/** A source map in the object store. */
export interface MapReference {
  readonly workspaceId: string
  /** Key of the object. It contains the workspace, so maps of different workspaces never have the same key. */
  readonly mapKey: string
}

/** Traces positions through source maps. The counts are those of the parsed maps that the process keeps. */
export interface MapTracer extends CacheCounts {
  /** The id of the process that traces, if it runs. */
  readonly pid: number | undefined
  /** Returns whether the workspace has time left. Work that has begun may use more than there is. */
  hasTime(workspaceId: string): boolean
  /**
   * Returns the original positions in the same order, or undefined if the map is missing or unusable. Throws the
   * errors of `openMap`, and a TransientError while another worker parses the map, or after `close`.
   */
  trace(
    map: MapReference,
    positions: readonly Position[],
  ): Promise<readonly (OriginalPosition | undefined)[] | undefined>
  close(): Promise<void>
}

/** Creates a tracer that traces positions in a separate process, which keeps the parsed maps. */
export function createMapTracer(deps: MapTracerDeps, options: MapTracerOptions): MapTracer {
  return new ProcessTracer(deps, options)
}

/** The end of a question without original positions. */
interface Unanswered {
  readonly kind: 'missing' | 'unusable'
  /** Undefined if the map was known to be unusable. */
  readonly reason?: string
}

/**
 * Sends one question at a time, so that a map that kills or blocks the process is known. This map counts as unusable for
 * a while, and a new process starts. Workspaces take turns.
 */
class ProcessTracer implements MapTracer {
  readonly #deps: MapTracerDeps
  readonly #options: MapTracerOptions
  readonly #unusable: LRUCache<string, true>
  readonly #turns = new FairSlots({ slots: 1, perOwner: 1 })
  readonly #msLeft: TokenBuckets
  #child: TraceChild | undefined
  #nextId = 1
  #hits = 0
  #misses = 0
  #closed = false

  constructor(deps: MapTracerDeps, options: MapTracerOptions) {
    this.#deps = deps
    this.#options = options
    this.#msLeft = new TokenBuckets({ capacity: options.msPerMinute ?? MS_PER_MINUTE, refillMs: 60_000 }, deps.now)
    this.#unusable = new LRUCache<string, true>({
      max: UNUSABLE_LIMIT,
      // An entry is stale once it is older than `ttl`.
      ttl: UNUSABLE_FOR_MS - 1,
      ttlResolution: 0,
      perf: { now: deps.now ?? Date.now },
    })
  }

  get hits(): number {
    return this.#hits
  }

  get misses(): number {
    return this.#misses
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  hasTime(workspaceId: string): boolean {
    return this.#msLeft.of(workspaceId).left > 0
  }

  async trace({ workspaceId, mapKey }: MapReference, positions: readonly Position[]) {
    if (this.#unusable.has(mapKey)) return undefined
    const result = await this.#turns.run(workspaceId, async () => {
      const startedAt = performance.now()
      try {
        return await this.#ask(mapKey, positions)
      } finally {
        this.#msLeft.of(workspaceId).take(performance.now() - startedAt)
      }
    })
    if (result.kind === 'traced') return result.originals
    if (result.kind === 'missing') this.#deps.logger.warn({ mapKey }, 'a source map is not in the object store')
    else if (result.reason !== undefined) {
      this.#deps.logger.warn({ mapKey, reason: result.reason }, 'a source map is unusable')
    }
    return undefined
  }

  async close() {
    this.#closed = true
    // A question in progress ends with the process.
    await this.#endChild()
  }

  async #ask(mapKey: string, positions: readonly Position[]): Promise<(TraceAnswer & { kind: 'traced' }) | Unanswered> {
    if (this.#closed) throw closedError()
    if (this.#unusable.has(mapKey)) return { kind: 'unusable' }
    const child = this.#runningChild()
    const id = this.#nextId++
    const first = await child.ask({ kind: 'question', id, mapKey, positions }).within()
    if (first.kind === 'absent') this.#misses++
    else if (first.kind === 'traced') this.#hits++
    const answer = first.kind === 'absent' ? await this.#sendMap(child, id, mapKey) : first
    if (answer.kind === 'traced' || answer.kind === 'missing') return answer
    if (answer.kind === 'dead') {
      await this.#endChild()
      if (this.#closed) throw closedError()
      if (!child.isReady) throw new TransientError(`source maps cannot be parsed: ${answer.reason}`)
    }
    this.#unusable.set(mapKey, true)
    if (answer.kind === 'absent' || answer.reason === undefined) return { kind: 'unusable' }
    await this.#deps.guards.condemn(mapKey)
    return { kind: 'unusable', reason: answer.reason }
  }

  /** Sends the map that a question needs. It is marked before, so that no other worker tries a map that ends this one. */
  async #sendMap(child: TraceChild, id: number, mapKey: string): Promise<TraceAnswer | DeadChild | Unanswered> {
    const { guards } = this.#deps
    const entry = await guards.enter(mapKey)
    if (entry === 'busy') throw new TransientError('another worker parses this source map')
    if (entry === 'unusable') return { kind: 'unusable' }
    let answer: TraceAnswer | DeadChild | Unanswered
    try {
      answer = await this.#streamMap(child, id, mapKey)
    } catch (error) {
      await guards.leave(mapKey)
      throw error
    }
    if (answer.kind === 'traced' || answer.kind === 'missing' || this.#closed) await guards.leave(mapKey)
    return answer
  }

  /** Sends the bytes as they arrive from the store, until all are sent or the process has answered. */
  async #streamMap(child: TraceChild, id: number, mapKey: string): Promise<TraceAnswer | DeadChild | Unanswered> {
    const object = await this.#deps.openMap(mapKey)
    if (object === undefined) return { kind: 'missing' }
    const awaited = child.ask({ kind: 'map', id, size: object.size })
    try {
      for await (const bytes of object.body as AsyncIterable<Buffer>) {
        await Promise.race([child.send({ kind: 'bytes', id, bytes }), awaited.within()])
        // Leaving the loop destroys the stream.
        if (awaited.isSettled) break
        // The deadline is that of the process. The store has its own.
        awaited.pause()
      }
      return await awaited.within()
    } finally {
      awaited.drop()
    }
  }

  #runningChild(): TraceChild {
    // The process may also end between two questions. The next question must not wait for it or blame its map.
    if (this.#child?.hasExited === false) return this.#child
    this.#child = startChild(this.#options)
    return this.#child
  }

  async #endChild(): Promise<void> {
    const ended = this.#child
    this.#child = undefined
    await ended?.end()
  }
}

const closedError = () => new TransientError('the tracer is closed', { code: 'PENSTOCK_STOPPING' })

/** A third of the heap is for the text of a map while it is parsed, and for the syntax tree of a source. */
function startChild(options: MapTracerOptions): TraceChild {
  const { heapBytes, deadlineMs = TRACE_DEADLINE_MS, indexingLimitMs = INDEXING_LIMIT_MS } = options
  const cacheBytes = Math.min(options.cacheBytes, Math.floor(heapBytes / 4))
  const mapLimitBytes = options.mapLimitBytes ?? Math.floor((heapBytes * 2) / 3) - cacheBytes
  return new TraceChild({ settings: { cacheBytes, mapLimitBytes, indexingLimitMs }, heapBytes, deadlineMs })
}
