import { MessageChannel } from 'node:worker_threads'
import { ClickHouseError } from '@clickhouse/client'
import Tinypool from 'tinypool'
import { type ClickHouseClient, classifyClickHouseError } from '../../../clickhouse/client.ts'
import { PromqlError } from '../../../promql/promql-error.ts'
import { errorFields, errorMessage, TransientError } from '../../../shared/runtime/errors.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { ThreadFailure, ThreadJob, ThreadTasks } from './thread.ts'
import type { AskedRead, ReadAnswer } from './thread-reads.ts'

/** Heap of a thread. One that needs more is ended. Memory of buffers is not part of it. */
const HEAP_MB = 96
/** V8 gives a thread up to 48 MB for new objects otherwise. */
const YOUNG_MB = 8
/** Starting a thread takes a quarter of a second, and an idle one keeps up to 60 MB. */
const IDLE_MS = 10_000
/** A task that waits for a read ends with it when its time is over. One that still computes then is ended with its thread. */
const GRACE_MS = 100

/** Where a task reads, and until when. */
interface TaskOptions {
  readonly clickhouse: ClickHouseClient
  readonly signal: AbortSignal
}

/**
 * Threads for responses whose computation takes long. A slot must be held for each task (`SHARES`), so that none waits for a
 * thread, and no workspace has all of them.
 */
export class ReadThreads {
  readonly #pool: Tinypool

  constructor(threads: number, logger: Logger) {
    this.#pool = new Tinypool({
      filename: new URL('./thread.ts', import.meta.url).href,
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: IDLE_MS,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    })
    this.#pool.on('error', error => logger.error(errorFields(error), 'a thread failed'))
  }

  /**
   * Runs a task and returns its bytes, or undefined if what it is of does not exist. Throws a PromqlError for a query that is
   * refused, the error of a read, a TransientError when the signal fires before, and an error of memory (`isMemoryError`) if the
   * heap of the thread is too small.
   */
  async run<Name extends keyof ThreadTasks>(
    name: Name,
    input: ThreadJob<Name>['input'],
    { clickhouse, signal }: TaskOptions,
  ): Promise<Uint8Array | undefined> {
    if (signal.aborted) throw tooLate()
    const { port1: port, port2 } = new MessageChannel()
    const failures = new Map<number, unknown>()
    port.on('message', (read: AskedRead) => {
      void answer(read, { clickhouse, signal }, message => port.postMessage(message)).then(error => {
        if (error !== undefined) failures.set(read.id, error)
      })
    })
    const end = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const onAbort = () => {
      timer = setTimeout(() => end.abort(), GRACE_MS)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const job = { name, input, port: port2 }
      const result: unknown = await this.#pool.run(job, { transferList: [port2], signal: end.signal })
      if (result === undefined || result instanceof Uint8Array) return result
      const failure = result as ThreadFailure
      if (failure.kind === 'refused') throw new PromqlError(failure.message, failure.type)
      throw signal.aborted ? tooLate() : classifyClickHouseError(failures.get(failure.read))
    } catch (error) {
      if (end.signal.aborted) throw tooLate()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
      clearTimeout(timer)
      port.close()
    }
  }

  /** Ends all threads. Tasks in progress fail. */
  close(): Promise<void> {
    return this.#pool.destroy()
  }
}

function tooLate(): TransientError {
  return new TransientError('the time for the response is over')
}

/** Reads for a thread. Returns the error of a read that failed. */
async function answer(
  { id, query }: AskedRead,
  { clickhouse, signal }: TaskOptions,
  send: (message: ReadAnswer) => void,
): Promise<unknown> {
  try {
    const summary = await clickhouse.reads.read({ ...query, signal }, bytes => send({ id, kind: 'chunk', bytes }))
    send({ id, kind: 'end', summary })
    return undefined
  } catch (error) {
    const { code, type = '' } = error instanceof ClickHouseError ? error : {}
    send({ id, kind: 'failed', message: errorMessage(error), code, type })
    return error
  }
}
