import { parentPort, workerData } from 'node:worker_threads'
import type { ScrubberOptions } from '../../../shared/scrubbing/scrubber.ts'
import type { Inspected, Inspector } from '../inspect-chunk.ts'

/** A chunk to inspect: the first bytes of the memory that the thread shares with the main thread. */
export interface InspectionRequest {
  readonly bytes: number
  readonly encoding: 'gzip' | 'identity'
  readonly valueRules: ScrubberOptions | undefined
}

/**
 * An answer of the thread: once that it is ready, then the outcome of each inspection. An error that was thrown has its code
 * beside it, which a copy of an error lacks.
 */
export type InspectionAnswer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'inspected'; readonly inspected: Inspected }
  | { readonly kind: 'failed'; readonly error: unknown; readonly code: string | undefined }

/** Answers the requests of the main thread, one after the other, with this inspector. */
export function serveInspections(inspect: Inspector): void {
  const memory = workerData as SharedArrayBuffer
  const answer = async ({ bytes, encoding, valueRules }: InspectionRequest): Promise<InspectionAnswer> => {
    try {
      const inspected = await inspect(Buffer.from(memory, 0, bytes), encoding, valueRules)
      return { kind: 'inspected', inspected }
    } catch (error) {
      return { kind: 'failed', error, code: (error as NodeJS.ErrnoException | undefined)?.code }
    }
  }
  const send = (message: InspectionAnswer) => parentPort?.postMessage(message, memoryOf(message))
  parentPort?.on('message', (request: InspectionRequest) => void answer(request).then(send))
  send({ kind: 'ready' })
}

/** Returns the memory that is moved with an answer instead of copied. */
function memoryOf(answer: InspectionAnswer): ArrayBuffer[] {
  const mended = answer.kind === 'inspected' && answer.inspected.ok ? answer.inspected.mended : undefined
  return mended === undefined ? [] : [mended.buffer]
}
