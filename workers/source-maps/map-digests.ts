import { createHash } from 'node:crypto'
import type { DeclaredHash } from '../../shared/ids/declared-hash.ts'

/** Every digest that a client may declare of a map, in hex. */
export interface MapDigests {
  readonly sha256: string
  readonly sha1: string
  readonly md5: string
}

/** Computes the digests of a map in one pass over its bytes. */
export class MapDigester {
  readonly #sha256 = createHash('sha256')
  readonly #sha1 = createHash('sha1')
  readonly #md5 = createHash('md5')

  update(bytes: Uint8Array): void {
    this.#sha256.update(bytes)
    this.#sha1.update(bytes)
    this.#md5.update(bytes)
  }

  /** Returns the digests. Must be called once. */
  digest(): MapDigests {
    return { sha256: this.#sha256.digest('hex'), sha1: this.#sha1.digest('hex'), md5: this.#md5.digest('hex') }
  }
}

/** Returns whether the digests are those of the declared hash. */
export function isDeclared(declared: DeclaredHash, digests: MapDigests): boolean {
  return digests[declared.algorithm] === declared.hex
}

/** Returns the metadata of the object of a map. With it, another declared hash can be compared without reading the object. */
export function mapMetadata({ sha1, md5 }: MapDigests): Record<string, string> {
  return { sha1, md5 }
}

/** Reads the digests of a map from the metadata of its object. Returns undefined for an object that was copied without them. */
export function digestsInMetadata(sha256: string, metadata: Readonly<Record<string, string>>): MapDigests | undefined {
  const { sha1 = '', md5 = '' } = metadata
  return /^[0-9a-f]{40}$/.test(sha1) && /^[0-9a-f]{32}$/.test(md5) ? { sha256, sha1, md5 } : undefined
}
