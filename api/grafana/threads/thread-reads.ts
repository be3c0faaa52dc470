import type { MessagePort } from 'node:worker_threads'
import { ClickHouseError } from '@clickhouse/client'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { BoundQuery, Reads } from '../../../clickhouse/read-connection.ts'

/** A read that a thread asks the main thread for. The deadline is that of its task, which the main thread knows. */
export interface AskedRead {
  readonly id: number
  readonly query: Omit<BoundQuery, 'signal'>
}

/** An answer of the main thread to a read: parts of the result, then its end or a failure. */
export type ReadAnswer = { readonly id: number } & (
  | { readonly kind: 'chunk'; readonly bytes: Uint8Array }
  | { readonly kind: 'end'; readonly summary: string }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined; readonly type: string }
)

interface PendingRead {
  readonly onChunk: (chunk: Buffer) => void
  readonly resolve: (summary: string) => void
  readonly reject: (error: Error) => void
}

/**
 * Reads of ClickHouse by a thread that has no connection, no settings and no secret: the main thread reads for it, with the
 * limits and the retention of its own client.
 */
export class ThreadReads implements Reads {
  readonly #port: MessagePort
  readonly #pending = new Map<number, PendingRead>()
  /** The errors of reads that failed, by which the main thread knows its own. */
  readonly #failures = new Map<unknown, number>()
  #lastId = 0

  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (answer: ReadAnswer) => this.#take(answer))
  }

  read({ query, params, settings, trace }: BoundQuery, onChunk: (chunk: Buffer) => void): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const id = ++this.#lastId
    this.#pending.set(id, { onChunk, resolve, reject })
    this.#port.postMessage({ id, query: { query, params, settings, trace } } satisfies AskedRead)
    return promise
  }

  /** Returns the read whose failure has led to an error, or undefined. */
  readBehind(error: unknown): number | undefined {
    for (let at = error; at instanceof Error; at = at.cause) {
      const id = this.#failures.get(at)
      if (id !== undefined) return id
    }
    return undefined
  }

  #take(answer: ReadAnswer): void {
    const pending = this.#pending.get(answer.id)
    if (pending === undefined) return
    if (answer.kind === 'chunk') {
      const { buffer, byteOffset, length } = answer.bytes
      try {
        pending.onChunk(Buffer.from(buffer, byteOffset, length))
      } catch (error) {
        this.#pending.delete(answer.id)
        pending.reject(error as Error)
      }
      return
    }
    this.#pending.delete(answer.id)
    if (answer.kind === 'end') {
      pending.resolve(answer.summary)
      return
    }
    const { message, code, type } = answer
    const error = code === undefined ? new Error(message) : new ClickHouseError({ message, code, type })
    this.#failures.set(error, answer.id)
    pending.reject(error)
  }
}

/** Returns a client that only reads. */
export function readingClient(reads: Reads): ClickHouseClient {
  return { reads } as ClickHouseClient
}
