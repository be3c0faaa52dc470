import { Worker } from 'node:worker_threads'
import { LRUCache } from 'lru-cache'
import { Budget } from '../../shared/concurrency/budget.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { OriginalPosition, Position } from './parsed-map.ts'
import type { TraceAnswer, TraceQuestion, TraceThreadSettings } from './trace-messages.ts'

const MIB = 1024 * 1024
/** What one map may take when it is parsed: the largest that is taken in (64 MiB) takes 200 to 500. */
const MAP_LIMIT_BYTES = 512 * MIB
/** For the text of a map while it is parsed, and for the syntax tree of a source. */
const HEADROOM_BYTES = 384 * MIB
const DEADLINE_MS = 30_000
const UNUSABLE_FOR_MS = 10 * 60_000
const UNUSABLE_LIMIT = 10_000

export interface MapTracerDeps {
  /** The bytes of a map, or undefined when they are not there. */
  readonly fetchMap: (mapKey: string) => Promise<Buffer | undefined>
  readonly logger: Logger
  readonly now?: () => number
}

export interface MapTracerOptions {
  readonly cacheBytes: number
  /** Of maps that are on their way to the thread. */
  readonly heldBytes: number
  readonly deadlineMs?: number
  readonly mapLimitBytes?: number
  /** What the thread may hold in all; the cache, the largest map and room to work in when left out. */
  readonly heapBytes?: number
}

export interface MapReference {
  /** The key of its object, which has the workspace in it: maps of two workspaces are never mistaken for each other. */
  readonly mapKey: string
  readonly size: number
}

export interface MapTracer {
  /**
   * The places that these positions were made of, in their order. Undefined for all when the map is gone or unusable.
   * Throws what `fetchMap` throws, and a TransientError once closed.
   */
  trace(map: MapReference, positions: readonly Position[]): Promise<readonly (OriginalPosition | undefined)[]>
  close(): Promise<void>
}

type Traced = readonly (OriginalPosition | undefined)[] | 'absent' | 'unusable'

/** The thread did not live to answer, or not in time. */
interface DeadThread {
  readonly kind: 'dead'
  readonly reason: string
}

/**
 * Traces positions in a thread of its own, which keeps the parsed maps. One question at a time, so that it is known
 * which map has killed the thread or stopped it: that one counts as unusable for a while, and a new thread goes on.
 */
export function createMapTracer(deps: MapTracerDeps, options: MapTracerOptions): MapTracer {
  const { logger } = deps
  const deadlineMs = options.deadlineMs ?? DEADLINE_MS
  const unusable = new LRUCache<string, true>({
    max: UNUSABLE_LIMIT,
    // An entry is stale once it is older than `ttl`.
    ttl: UNUSABLE_FOR_MS - 1,
    ttlResolution: 0,
    perf: { now: deps.now ?? Date.now },
  })
  const held = new Budget(options.heldBytes)
  let thread: Worker | undefined
  let turn: Promise<unknown> = Promise.resolve()
  let nextId = 1
  let closed = false

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const own = turn.then(work)
    turn = own.catch(() => undefined)
    return own
  }

  /** Settles within the deadline. Throws a TransientError for a fault of the thread that is not the map's. */
  function ask(question: TraceQuestion): Promise<TraceAnswer | DeadThread> {
    const asked = thread ?? startNewThread()
    const { promise, resolve, reject } = Promise.withResolvers<TraceAnswer | DeadThread>()
    const onMessage = (answer: TraceAnswer) => answer.id === question.id && resolve(answer)
    const onError = (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve({ kind: 'dead', reason: 'the thread died of it' })
      else reject(new TransientError(`the thread failed: ${describeError(error)}`, { cause: error }))
    }
    const onExit = () => resolve({ kind: 'dead', reason: 'the thread ended with it' })
    asked.on('message', onMessage).on('error', onError).on('exit', onExit)
    const timer = setTimeout(() => resolve({ kind: 'dead', reason: `it took more than ${deadlineMs} ms` }), deadlineMs)
    asked.postMessage(question, question.bytes === undefined ? [] : [question.bytes.buffer as ArrayBuffer])
    return promise.finally(() => {
      clearTimeout(timer)
      asked.off('message', onMessage).off('error', onError).off('exit', onExit)
    })
  }

  async function askInTurn(mapKey: string, positions: readonly Position[], bytes?: Uint8Array): Promise<Traced> {
    return inTurn(async () => {
      if (closed) throw new TransientError('the tracer is closed')
      if (unusable.has(mapKey)) return 'unusable'
      const question = { id: nextId++, mapKey, positions, ...(bytes && { bytes }) }
      const answer = await ask(question).catch(async error => {
        await endThread()
        throw error
      })
      if (answer.kind === 'traced') return answer.originals
      if (answer.kind === 'absent') return 'absent'
      unusable.set(mapKey, true)
      logger.warn({ mapKey, reason: answer.reason }, 'a source map cannot be used')
      if (answer.kind === 'dead') await endThread()
      return 'unusable'
    })
  }

  function startNewThread(): Worker {
    const started = startThread(options)
    thread = started
    // It may die between two questions too: the next must not wait for it, and its map must not be blamed.
    started.once('exit', () => {
      if (thread === started) thread = undefined
    })
    return started
  }

  async function endThread(): Promise<void> {
    const ended = thread
    thread = undefined
    await ended?.terminate()
  }

  return {
    async trace({ mapKey, size }, positions) {
      const nothing = positions.map(() => undefined)
      if (unusable.has(mapKey)) return nothing
      const known = await askInTurn(mapKey, positions)
      if (known !== 'absent') return known === 'unusable' ? nothing : known
      const release = await held.acquire(size)
      try {
        const bytes = await deps.fetchMap(mapKey)
        if (bytes === undefined) {
          logger.warn({ mapKey }, 'a source map is not in the object store')
          return nothing
        }
        // A copy of its own: what is transferred is gone here, and a Buffer may share its memory with others.
        const traced = await askInTurn(mapKey, positions, Uint8Array.from(bytes))
        return typeof traced === 'string' ? nothing : traced
      } finally {
        release()
      }
    },
    async close() {
      closed = true
      await inTurn(endThread)
    },
  }
}

function startThread({ cacheBytes, mapLimitBytes = MAP_LIMIT_BYTES, heapBytes }: MapTracerOptions): Worker {
  const limitBytes = heapBytes ?? cacheBytes + mapLimitBytes + HEADROOM_BYTES
  const worker = new Worker(new URL('./trace-thread.ts', import.meta.url), {
    name: 'source maps',
    workerData: { cacheBytes, mapLimitBytes } satisfies TraceThreadSettings,
    resourceLimits: {
      maxOldGenerationSizeMb: Math.ceil(limitBytes / MIB),
      maxYoungGenerationSizeMb: 32,
      stackSizeMb: 4,
    },
  })
  // Between two questions nobody else listens, and an error without a listener would end the process.
  worker.on('error', () => undefined)
  worker.unref()
  return worker
}
