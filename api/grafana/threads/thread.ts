import type { MessagePort } from 'node:worker_threads'
import Tinypool from 'tinypool'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { PromqlError } from '../../../promql/promql-error.ts'
import { evaluateQuery } from '../prometheus/evaluate-query.ts'
import { followExpression } from '../prometheus/follow-expression.ts'
import { renderLargeTrace } from '../render-trace.ts'
import { readingClient, ThreadReads } from './thread-reads.ts'

/** The tasks of threads. Each returns the bytes of a response, or undefined if what it is of does not exist. */
const TASKS = { evaluateQuery, followExpression, renderLargeTrace } satisfies Record<
  string,
  (client: ClickHouseClient, input: never) => Promise<Uint8Array | undefined>
>

/** The tasks of threads by name. */
export type ThreadTasks = typeof TASKS

/** A task with the port by which it reads. */
export interface ThreadJob<Name extends keyof ThreadTasks = keyof ThreadTasks> {
  readonly name: Name
  readonly input: Parameters<ThreadTasks[Name]>[1]
  readonly port: MessagePort
}

/** Why a task has no bytes: its query is refused, or a read failed, of which the main thread has the error. */
export type ThreadFailure =
  | { readonly kind: 'refused'; readonly message: string; readonly type: PromqlError['type'] }
  | { readonly kind: 'unread'; readonly read: number }

/** Memory that Node shares among small buffers cannot be moved to another thread. */
function withOwnMemory(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}

/** Entry point of a thread that computes responses, one at a time, so that the main thread answers others meanwhile. */
export default async function run({ name, input, port }: ThreadJob): Promise<unknown> {
  const reads = new ThreadReads(port)
  try {
    const task = TASKS[name] as (client: ClickHouseClient, of: unknown) => Promise<Uint8Array | undefined>
    const bytes = await task(readingClient(reads), input)
    return bytes && Tinypool.move(withOwnMemory(bytes))
  } catch (error) {
    if (error instanceof PromqlError) {
      return { kind: 'refused', message: error.message, type: error.type } satisfies ThreadFailure
    }
    const read = reads.readBehind(error)
    if (read === undefined) throw error
    return { kind: 'unread', read } satisfies ThreadFailure
  } finally {
    port.close()
  }
}
