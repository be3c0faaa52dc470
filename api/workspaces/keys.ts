import { hkdfSync, randomBytes } from 'node:crypto'
import type { Creation } from '../../schemas/records/creation.ts'
import { type KeyKind, sealKey } from '../../schemas/records/key-form.ts'
import type { NewCreation } from '../../shared/directory/creations.ts'
import { digestOf, generateKey } from '../../shared/ids/credentials.ts'
import type { KeyUse } from '../../shared/queue/key-usage.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32
/** The largest multiple of 62 within a byte. Larger bytes are skipped, because they would make the first characters likelier. */
const UNBIASED_BYTES = 248
/** On average 62 of 64 bytes are used. Fewer than 32 have a probability of 10⁻³⁷, and then the next 64 bytes are added. */
const STEP_BYTES = 64
/** The longest output of HKDF: 255 blocks of SHA-256 (RFC 5869). */
const MOST_BYTES = 255 * 32

/**
 * Derives the text of a key by HKDF-SHA-256 (RFC 5869) from the server's pepper and the salt of its creation. The same creation
 * always has the same key, so that a repeated request gets it again although it is not stored.
 */
export function deriveKey(
  kind: KeyKind,
  pepper: string,
  saltHex: string,
  { workspaceId, id }: Pick<Creation, 'workspaceId' | 'id'>,
): string {
  // No two creations have the same JSON.
  const info = JSON.stringify(['penstock key', kind, workspaceId, id])
  const salt = Buffer.from(saltHex, 'hex')
  for (let length = STEP_BYTES; length <= MOST_BYTES; length += STEP_BYTES) {
    const characters = base62Of(new Uint8Array(hkdfSync('sha256', pepper, salt, info, length)))
    if (characters.length >= LENGTH) return sealKey(kind, characters.slice(0, LENGTH))
  }
  throw new Error('HKDF returned too few usable bytes')
}

const SALT_BYTES = 32

/** A new key, and its creation with the salt if the client may repeat the request. */
interface NewKey {
  readonly secret: string
  readonly salted: NewCreation | undefined
}

/** Makes the text of a key: a derived one for a request that may be repeated, else a random one. */
export function newKey(kind: KeyKind, pepper: string, creation: NewCreation | undefined): NewKey {
  if (creation === undefined) return { secret: generateKey(kind), salted: undefined }
  const salt = randomBytes(SALT_BYTES).toString('hex')
  return { secret: deriveKey(kind, pepper, salt, creation), salted: { ...creation, salt } }
}

/** Derives the key of an earlier creation again. Returns why it cannot be given out, in text that follows the idempotency key. */
export function repeatedKey(
  kind: KeyKind,
  pepper: string,
  earlier: Creation,
  key: { readonly digest: string; readonly revokedAt: string | null } | undefined,
): { readonly secret: string } | { readonly reason: string } {
  if (key === undefined || key.revokedAt !== null) return { reason: 'belongs to a key that is revoked' }
  const secret = deriveKey(kind, pepper, earlier.salt ?? '', earlier)
  return digestOf(secret) === key.digest
    ? { secret }
    : { reason: 'was used before the KEY_PEPPER of the server changed' }
}

/** Maps each byte to one character, or skips it. */
function base62Of(bytes: Uint8Array): string {
  let characters = ''
  for (const byte of bytes) if (byte < UNBIASED_BYTES) characters += ALPHABET[byte % ALPHABET.length]
  return characters
}

/** Returns when a key that is created now expires, or null if it never does. */
export function keyExpiry(nowMs: number, secondsUntilExpiration: number | null): string | null {
  return secondsUntilExpiration === null ? null : rfc3339FromUnixMs(nowMs + secondsUntilExpiration * 1_000)
}

/** Returns the ids of keys, for which their use is read. */
export function idsOf(keys: readonly { readonly id: string }[]): string[] {
  return keys.map(({ id }) => id)
}

/** Returns the use of a key as lists show it. */
export function presentUse({ lastUsedAtMs, requestsToday }: KeyUse = { lastUsedAtMs: null, requestsToday: 0 }) {
  return { lastUsedAt: lastUsedAtMs === null ? null : rfc3339FromUnixMs(lastUsedAtMs), requestsToday }
}

const PREFIX_CHARACTERS = 6

/** Returns the part of a key that is stored and shown to recognize it: its kind, such as `wk_`, and three more characters. */
export function keyPrefix(key: string): string {
  return key.slice(0, PREFIX_CHARACTERS)
}
