import { createHash } from 'node:crypto'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { SourceMapScanner } from '../decode/source-map-scanner.ts'
import { MapDigester, type MapDigests } from './map-digests.ts'
import type { Digested } from './part-claims.ts'

/** One of the objects whose concatenated bytes are a map. `known` is its digest, if the client declared it. */
export interface PieceObject {
  readonly key: string
  readonly known?: Digested
}

/** The outcome of reading a map. */
export type ReadBytes =
  | {
      readonly outcome: 'read'
      readonly size: number
      readonly digests: MapDigests
      /** The bytes themselves, if they are within `keepBytes`. */
      readonly bytes: Buffer | undefined
    }
  /** One of the objects does not exist. */
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'too_large' }
  /** Parsing the map would cost too much. */
  | { readonly outcome: 'too_costly' }
  /** `take` has refused further bytes. */
  | { readonly outcome: 'out_of_budget' }
  /** The bytes of the object at `index` do not match its known digest. */
  | { readonly outcome: 'other'; readonly index: number }

/** Limits of reading a map. */
interface ReadLimits {
  readonly maxBytes: number
  /** A map up to this size is kept in memory while it is read, and need not be read again. */
  readonly keepBytes: number
  /** Memory that parsing the map may take, as a scan of its bytes estimates it. */
  readonly maxCostBytes: number
  /** Accounts for bytes that were read. Returns false to stop. */
  readonly take: (bytes: number) => boolean
}

/** Reads the bytes of a map as a stream, digests them, and estimates what parsing them would cost. */
export async function readMapBytes(
  objects: Pick<ObjectStore, 'getStream'>,
  pieces: readonly PieceObject[],
  limits: ReadLimits,
): Promise<ReadBytes> {
  const digester = new MapDigester()
  const scanner = new SourceMapScanner()
  let kept: Buffer[] | undefined = []
  let size = 0
  for (const [index, { key, known }] of pieces.entries()) {
    const object = await objects.getStream(key)
    if (object === undefined) return { outcome: 'gone' }
    const own = known && createHash('sha256')
    for await (const chunk of object.body as AsyncIterable<Buffer>) {
      size += chunk.length
      // Leaving the loop destroys the stream.
      if (size > limits.maxBytes) return { outcome: 'too_large' }
      if (!limits.take(chunk.length)) return { outcome: 'out_of_budget' }
      digester.update(chunk)
      own?.update(chunk)
      scanner.add(chunk)
      if (scanner.costBytes > limits.maxCostBytes) return { outcome: 'too_costly' }
      if (size > limits.keepBytes) kept = undefined
      kept?.push(chunk)
    }
    if (known && own?.digest('hex') !== known.sha256) return { outcome: 'other', index }
  }
  return { outcome: 'read', size, digests: digester.digest(), bytes: kept && Buffer.concat(kept, size) }
}

/**
 * Yields the bytes of the objects again and checks that they are the digested ones. The last chunk is yielded only after
 * the check, so that a store that knows the size never keeps other bytes. Throws a TransientError if the bytes differ.
 */
export async function* sameBytes(
  objects: Pick<ObjectStore, 'getStream'>,
  pieces: readonly PieceObject[],
  map: Digested,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let last: Buffer | undefined
  for (const { key } of pieces) {
    const object = await objects.getStream(key)
    if (object === undefined) throw new TransientError('an uploaded object was deleted after it was read')
    for await (const chunk of object.body as AsyncIterable<Buffer>) {
      if (chunk.length === 0) continue
      hash.update(chunk)
      if (last) yield last
      last = chunk
    }
  }
  if (hash.digest('hex') !== map.sha256) throw new TransientError('an uploaded object has changed after it was read')
  if (last) yield last
}
