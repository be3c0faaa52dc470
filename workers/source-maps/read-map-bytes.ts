import { createHash, type Hash } from 'node:crypto'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'
import type { ObjectStore } from '../../shared/object-store/object-store.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Digested } from './part-claims.ts'

/** One of the objects that together hold the bytes of a map; what is known of it before it is read. */
export interface PieceObject {
  readonly key: string
  readonly known?: Digested
}

export type ReadBytes =
  | {
      readonly outcome: 'read'
      readonly map: Digested
      /** Whether the declared hash is that of the bytes; true where nothing can be compared. */
      readonly matches: boolean
      /** The bytes themselves, where they are few enough to be held. */
      readonly bytes: Buffer | undefined
    }
  /** One of the objects is not there. */
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'too_large' }
  /** This object holds other bytes than was known of it. */
  | { readonly outcome: 'other'; readonly index: number }

export interface ReadLimits {
  readonly maxBytes: number
  /** What is smaller is kept while it is read, and need not be read again. */
  readonly keepBytes: number
}

/** Reads the bytes of a map through, as they come, and digests them. */
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
      // Leaving the loop ends the stream.
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
 * The bytes of the objects again, which must be those that were digested: the last of them is held back until that is
 * certain, so that a store that is given these bytes and their size never keeps others. Throws a TransientError else.
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
    if (object === undefined) throw new TransientError('an uploaded object is gone since it was read')
    for await (const chunk of object.body as AsyncIterable<Buffer>) {
      if (chunk.length === 0) continue
      hash.update(chunk)
      if (last) yield last
      last = chunk
    }
  }
  if (hash.digest('hex') !== map.sha256) throw new TransientError('an uploaded object has changed since it was read')
  if (last) yield last
}
