/** Number of hex digits of the digests that a client may declare. */
const DIGITS = { sha256: 64, sha1: 40, md5: 32 } as const
/** Algorithm of a declared digest. */
type HashAlgorithm = keyof typeof DIGITS

/** A digest that a client has declared. */
export interface DeclaredHash {
  readonly algorithm: HashAlgorithm
  /** In lower case. */
  readonly hex: string
}

/**
 * Parses the digest that a client has declared for a source map (`docs/api/releases.md#source-map-complete`): hex digits, with
 * or without the name of the algorithm before them (`sha256:…`, `SHA-1-…`). Returns undefined for any other form.
 */
export function parseDeclaredHash(text: string): DeclaredHash | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const match = /^(?:(sha-?256|sha-?1|md5)[:-])?([0-9a-f]+)$/.exec(text.toLowerCase())
  const [, name, hex = ''] = match ?? []
  const algorithm = ALGORITHMS.find(candidate => DIGITS[candidate] === hex.length)
  if (algorithm === undefined) return undefined
  if (name !== undefined && name.replace('-', '') !== algorithm) return undefined
  return { algorithm, hex }
}

const ALGORITHMS = Object.keys(DIGITS) as HashAlgorithm[]
/** `sha-256:` and 64 digits. */
const MAX_LENGTH = 72
