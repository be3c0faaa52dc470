import { Readable } from 'node:stream'
import { PermanentError, TransientError } from './errors.ts'

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
    const text = error instanceof Error ? error.message : String(error)
    throw new TransientError(`S3 get: the body broke off: ${text}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
