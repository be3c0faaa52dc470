import type { Readable, TransformOptions } from 'node:stream'
import { createGunzip, type ZlibOptions } from 'node:zlib'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { PermanentError, TransientError } from '../../shared/runtime/errors.ts'

/** The default of Node.js buffers four times as much, for each of the many open chunks. */
const GUNZIP: ZlibOptions & TransformOptions = { chunkSize: 16 * 1024, highWaterMark: 16 * 1024 }

/** The object of a chunk is not in the store, although its row is in ClickHouse. */
export class MissingChunk extends PermanentError {
  readonly objectKey: string

  constructor(objectKey: string) {
    super(`the replay chunk ${objectKey} is missing from the store`)
    this.objectKey = objectKey
  }
}

/** Opens a gzipped object. Throws a MissingChunk if there is none, and what the store throws. */
export async function openInflated(
  objects: Pick<ObjectStore, 'getStream'>,
  objectKey: string,
): Promise<InflatedObject> {
  const found = await objects.getStream(objectKey)
  if (found === undefined) throw new MissingChunk(objectKey)
  return new InflatedObject(objectKey, found.body)
}

/** The text of a gzipped object, read piece by piece as far as it is needed. */
class InflatedObject {
  readonly #objectKey: string
  readonly #source: Readable
  readonly #inflated: Readable
  readonly #pieces: AsyncIterator<Buffer>

  constructor(objectKey: string, source: Readable) {
    this.#objectKey = objectKey
    this.#source = source
    const gunzip = createGunzip(GUNZIP)
    source.once('error', error => gunzip.destroy(error))
    this.#inflated = source.pipe(gunzip)
    this.#pieces = this.#inflated[Symbol.asyncIterator]()
  }

  /** Returns the next piece, or undefined at the end. */
  async read(): Promise<Buffer | undefined> {
    try {
      const { value, done } = await this.#pieces.next()
      return done ? undefined : value
    } catch (error) {
      if (error instanceof TransientError || error instanceof PermanentError) throw error
      throw new PermanentError(`the replay chunk ${this.#objectKey} cannot be decompressed`, { cause: error })
    }
  }

  /** Closes the streams. */
  close(): void {
    this.#source.destroy()
    this.#inflated.destroy()
  }
}
