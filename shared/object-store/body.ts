import { Readable } from 'node:stream'
import { errorMessage, PermanentError, TransientError } from '../runtime/errors.ts'

/** All of a body. Over `limitBytes` it is a PermanentError, and the rest is not read. */
export async function readWholeBody(body: Readable, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop destroys the body, and its connection with it.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limitBytes) throw new PermanentError(`S3 get: the object is over ${limitBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

/** The body as a stream whose faults are TransientErrors; one of them is that nothing came for `idleMs`. */
export function guardBody(source: Readable, idleMs: number): Readable {
  const body = Readable.from(chunksOf(source, idleMs), { objectMode: false })
  // A generator that was never begun has no `finally` to run.
  body.once('close', () => source.destroy())
  return body
}

async function* chunksOf(source: Readable, idleMs: number): AsyncGenerator<Buffer> {
  let timer: NodeJS.Timeout | undefined
  // Runs only while the source is waited for: a slow reader is no fault of the store.
  const watch = () => {
    timer = setTimeout(() => source.destroy(new TransientError(`S3 get: nothing came for ${idleMs} ms`)), idleMs)
  }
  try {
    watch()
    for await (const chunk of source as AsyncIterable<Buffer>) {
      clearTimeout(timer)
      yield chunk
      watch()
    }
  } catch (error) {
    if (error instanceof TransientError) throw error
    throw new TransientError(`S3 get: the body broke off: ${errorMessage(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

export interface SentBody {
  readonly source: AsyncIterable<Buffer>
  readonly size: number
  readonly abortSignal: AbortSignal
  /** Told of every piece that the store has room for. */
  readonly progress: () => void
}

/**
 * Sends exactly `size` bytes of a source by `send`. What is wrong with the source ends the request before its last byte,
 * so that the store keeps nothing of it, and is thrown; the client alone would leave the request open.
 */
export async function sendBody(
  { source, size, abortSignal, progress }: SentBody,
  send: (body: Readable, abortSignal: AbortSignal) => Promise<void>,
): Promise<void> {
  const broken = new AbortController()
  let fault: unknown
  const body = Readable.from(exactly(source, size, progress), { objectMode: false })
  body.once('error', error => {
    fault ??= error
    broken.abort()
  })
  try {
    await send(body, AbortSignal.any([abortSignal, broken.signal]))
  } catch (error) {
    throw fault ?? error
  } finally {
    body.destroy()
  }
}

async function* exactly(source: AsyncIterable<Buffer>, size: number, progress: () => void): AsyncGenerator<Buffer> {
  let sent = 0
  for await (const piece of source) {
    progress()
    sent += piece.length
    if (sent > size) throw new PermanentError(`S3 put: the source has more than its ${size} bytes`)
    if (piece.length > 0) yield piece
  }
  if (sent < size) throw new PermanentError(`S3 put: the source has ${sent} bytes of its ${size}`)
}
