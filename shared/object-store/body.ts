import { Readable } from 'node:stream'
import { errorMessage, PermanentError, TransientError } from '../runtime/errors.ts'

/** Reads a whole body. Throws a PermanentError over `limitBytes`, without reading the rest. */
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

/** Wraps a body in a stream whose errors are TransientErrors. It also fails if the source sends nothing for `idleMs`. */
export function guardBody(source: Readable, idleMs: number): Readable {
  const body = Readable.from(chunksOf(source, idleMs), { objectMode: false })
  // The `finally` of a generator does not run if the generator was never started.
  body.once('close', () => source.destroy())
  return body
}

async function* chunksOf(source: Readable, idleMs: number): AsyncGenerator<Buffer> {
  let timer: NodeJS.Timeout | undefined
  // The timer runs only while the source is awaited, because the store is not to blame for a slow reader.
  const watch = () => {
    timer = setTimeout(
      () => source.destroy(new TransientError(`S3 get: the store sent nothing for ${idleMs} ms`)),
      idleMs,
    )
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
    throw new TransientError(`S3 get: the body ended early: ${errorMessage(error)}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

/** A body to send. */
interface SentBody {
  readonly source: AsyncIterable<Buffer>
  readonly size: number
  readonly abortSignal: AbortSignal
  /** Runs for every piece that the connection accepts. */
  readonly progress: () => void
}

/**
 * Sends exactly `size` bytes of a source with `send`. An error of the source is rethrown and ends the request before its
 * last byte, so that the store keeps nothing. The SDK alone would leave the request open.
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
    if (sent > size) throw new PermanentError(`S3 put: the source has more than the declared ${size} bytes`)
    if (piece.length > 0) yield piece
  }
  if (sent < size) throw new PermanentError(`S3 put: the source has only ${sent} of the declared ${size} bytes`)
}
