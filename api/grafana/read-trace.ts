import { isMemoryError, TransientError } from '../../shared/runtime/errors.ts'
import type { TraceReadDeps } from '../traces/load-columns.ts'
import { loadSmallTrace } from '../traces/spans/load-all-spans.ts'
import { type FormedTrace, renderTrace } from './render-trace.ts'
import type { ReadThreads } from './threads/read-threads.ts'

/** Dependencies of reading whole traces. */
export interface ReadTraceDeps extends TraceReadDeps {
  readonly threads: Pick<ReadThreads, 'run'>
}

/**
 * Returns the body of the response with a whole trace, or undefined if nothing of it is retained. A large trace is read and
 * rendered by a thread, in a slot for large traces: it takes up to two seconds.
 */
export async function readTrace(
  { clickhouse, largeTraces, threads }: ReadTraceDeps,
  trace: FormedTrace,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { key, form } = trace
  const small = await loadSmallTrace(clickhouse, key, signal)
  if (small !== 'large') return small && renderTrace(small, form)
  const readLarge = () => threads.run('renderLargeTrace', trace, { clickhouse, signal })
  try {
    return await largeTraces.run(key.workspaceId, readLarge, signal)
  } catch (error) {
    if (!isMemoryError(error)) throw error
    throw new TransientError('a trace needs more memory than a thread has', { cause: error })
  }
}
