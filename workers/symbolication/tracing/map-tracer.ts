import { Worker } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import { Budget } from '../../../shared/concurrency/budget.ts'
import { describeError, TransientError } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { OriginalPosition, Position } from './parsed-map.ts'
import type { TraceAnswer, TraceQuestion, TraceThreadSettings } from './trace-messages.ts'

const MIB = 1024 * 1024
/** Memory limit of one parsed map. The largest accepted map (64 MiB) takes 200 to 500 MiB. */
const MAP_LIMIT_BYTES = 512 * MIB
/** Memory for the text of a map while it is parsed, and for the syntax tree of a source. */
const HEADROOM_BYTES = 384 * MIB
const DEADLINE_MS = 30_000
const UNUSABLE_FOR_MS = 10 * 60_000
const UNUSABLE_LIMIT = 10_000

/** Dependencies of a tracer. */
export interface MapTracerDeps {
  /** Returns the bytes of a map, or undefined if the map does not exist. */
  readonly fetchMap: (mapKey: string) => Promise<Buffer | undefined>
  readonly logger: Logger
  readonly now?: () => number
}

/** Limits of a tracer. */
export interface MapTracerOptions {
  readonly cacheBytes: number
  /** Limit in bytes of the maps on their way to the thread. */
  readonly heldBytes: number
  readonly deadlineMs?: number
  readonly mapLimitBytes?: number
  /** Heap limit of the thread. By default it fits the cache, the largest map and working memory. */
  readonly heapBytes?: number
}

/** A source map in the object store. */
export interface MapReference {
  /** Key of the object. It contains the workspace, so maps of different workspaces never have the same key. */
  readonly mapKey: string
  readonly size: number
}

/** Traces positions through source maps. */
export interface MapTracer {
  /**
   * Returns the original positions in the same order. All are undefined if the map is missing or unusable. Throws the
   * errors of `fetchMap`, and a TransientError after `close`.
   */
  trace(map: MapReference, positions: readonly Position[]): Promise<readonly (OriginalPosition | undefined)[]>
  close(): Promise<void>
}

type Traced = readonly (OriginalPosition | undefined)[] | 'absent' | 'unusable'

/** The result of a thread that ended or missed the deadline. */
interface DeadThread {
  readonly kind: 'dead'
  readonly reason: string
}

/** Creates a tracer that traces positions in a separate thread, which keeps the parsed maps. */
export function createMapTracer(deps: MapTracerDeps, options: MapTracerOptions): MapTracer {
  return new ThreadedTracer(deps, options)
}

/**
 * Sends one question at a time, so that a map that kills or blocks the thread is known. This map counts as unusable for
 * a while, and a new thread starts.
 */
class ThreadedTracer implements MapTracer {
  readonly #deps: MapTracerDeps
  readonly #options: MapTracerOptions
  readonly #unusable: LRUCache<string, true>
  readonly #held: Budget
  #thread: Worker | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #nextId = 1
  #closed = false

  constructor(deps: MapTracerDeps, options: MapTracerOptions) {
    this.#deps = deps
    this.#options = options
    this.#held = new Budget(options.heldBytes)
    this.#unusable = new LRUCache<string, true>({
      max: UNUSABLE_LIMIT,
      // An entry is stale once it is older than `ttl`.
      ttl: UNUSABLE_FOR_MS - 1,
      ttlResolution: 0,
      perf: { now: deps.now ?? Date.now },
    })
  }

  async trace({ mapKey, size }: MapReference, positions: readonly Position[]) {
    const nothing = positions.map(() => undefined)
    if (this.#unusable.has(mapKey)) return nothing
    const known = await this.#askInTurn(mapKey, positions)
    if (known !== 'absent') return known === 'unusable' ? nothing : known
    const release = await this.#held.acquire(size)
    try {
      const bytes = await this.#deps.fetchMap(mapKey)
      if (bytes === undefined) {
        this.#deps.logger.warn({ mapKey }, 'a source map is not in the object store')
        return nothing
      }
      // The copy is transferred to the thread. A Buffer may share its memory with others.
      const traced = await this.#askInTurn(mapKey, positions, Uint8Array.from(bytes))
      return typeof traced === 'string' ? nothing : traced
    } finally {
      release()
    }
  }

  async close() {
    this.#closed = true
    await this.#inTurn(() => this.#endThread())
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const own = this.#turn.then(work)
    this.#turn = own.catch(() => undefined)
    return own
  }

  #askInTurn(mapKey: string, positions: readonly Position[], bytes?: Uint8Array): Promise<Traced> {
    return this.#inTurn(async () => {
      if (this.#closed) throw new TransientError('the tracer is closed')
      if (this.#unusable.has(mapKey)) return 'unusable'
      const question = { id: this.#nextId++, mapKey, positions, ...(bytes && { bytes }) }
      const answer = await this.#ask(question).catch(async error => {
        await this.#endThread()
        throw error
      })
      if (answer.kind === 'traced') return answer.originals
      if (answer.kind === 'absent') return 'absent'
      this.#unusable.set(mapKey, true)
      this.#deps.logger.warn({ mapKey, reason: answer.reason }, 'a source map is unusable')
      if (answer.kind === 'dead') await this.#endThread()
      return 'unusable'
    })
  }

  /** Settles within the deadline. Throws a TransientError for an error of the thread that the map did not cause. */
  #ask(question: TraceQuestion): Promise<TraceAnswer | DeadThread> {
    const thread = this.#thread ?? this.#startThread()
    const deadlineMs = this.#options.deadlineMs ?? DEADLINE_MS
    const { promise, resolve, reject } = Promise.withResolvers<TraceAnswer | DeadThread>()
    const onMessage = (answer: TraceAnswer) => answer.id === question.id && resolve(answer)
    const onError = (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve({ kind: 'dead', reason: 'the thread ran out of memory' })
      else reject(new TransientError(`the thread failed: ${describeError(error)}`, { cause: error }))
    }
    const onExit = () => resolve({ kind: 'dead', reason: 'the thread ended while tracing' })
    thread.on('message', onMessage).on('error', onError).on('exit', onExit)
    const timer = setTimeout(() => resolve({ kind: 'dead', reason: `it took more than ${deadlineMs} ms` }), deadlineMs)
    thread.postMessage(question, question.bytes === undefined ? [] : [question.bytes.buffer as ArrayBuffer])
    return promise.finally(() => {
      clearTimeout(timer)
      thread.off('message', onMessage).off('error', onError).off('exit', onExit)
    })
  }

  #startThread(): Worker {
    const started = startThread(this.#options)
    this.#thread = started
    // The thread may also end between two questions. The next question must not wait for it or blame its map.
    started.once('exit', () => {
      if (this.#thread === started) this.#thread = undefined
    })
    return started
  }

  async #endThread(): Promise<void> {
    const ended = this.#thread
    this.#thread = undefined
    await ended?.terminate()
  }
}

function startThread({ cacheBytes, mapLimitBytes = MAP_LIMIT_BYTES, heapBytes }: MapTracerOptions): Worker {
  const limitBytes = heapBytes ?? cacheBytes + mapLimitBytes + HEADROOM_BYTES
  const worker = new Worker(new URL('./trace-process.ts', import.meta.url), {
    name: 'source maps',
    workerData: { cacheBytes, mapLimitBytes } satisfies TraceThreadSettings,
    resourceLimits: {
      maxOldGenerationSizeMb: Math.ceil(limitBytes / MIB),
      maxYoungGenerationSizeMb: 32,
      stackSizeMb: 4,
    },
  })
  // Between two questions there is no other listener, and an unhandled error event would end the process.
  worker.on('error', () => undefined)
  worker.unref()
  return worker
}
