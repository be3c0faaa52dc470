import { createHash, type Hash } from 'node:crypto'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
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
      readonly map: Digested
      /** Whether the bytes match the declared hash. True if there is nothing to compare. */
      readonly matches: boolean
      /** The bytes themselves, if they are within `keepBytes`. */
      readonly bytes: Buffer | undefined
    }
  /** One of the objects does not exist. */
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'too_large' }
  /** The bytes of the object at `index` do not match its known digest. */
  | { readonly outcome: 'other'; readonly index: number }

/** Limits of reading a map. */
export interface ReadLimits {
  readonly maxBytes: number
  /** A map up to this size is kept in memory while it is read, and need not be read again. */
  readonly keepBytes: number
}

/** Reads the bytes of a map as a stream and digests them. */
export async function readMapBytes(
  objects: Pick<ObjectStore, 'getStream'>,
  pieces: readonly PieceObject[],
  declared: DeclaredHash | undefined,
  limits: ReadLimits,
): Promise<ReadBytes> {
  const sha256 = createHash('sha256')
  const other = declared && declared.algorithm !== 'sha256' ? createHash(declared.algorithm) : undefined
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
      for (const hash of [sha256, other, own]) hash?.update(chunk)
      if (size > limits.keepBytes) kept = undefined
      kept?.push(chunk)
    }
    if (known && own?.digest('hex') !== known.sha256) return { outcome: 'other', index }
  }
  const map = { sha256: sha256.digest('hex'), size }
  return { outcome: 'read', map, matches: isDeclared(declared, map, other), bytes: kept && Buffer.concat(kept, size) }
}

function isDeclared(declared: DeclaredHash | undefined, map: Digested, other: Hash | undefined): boolean {
  return declared === undefined || declared.hex === (other ? other.digest('hex') : map.sha256)
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
