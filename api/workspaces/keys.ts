import { hkdfSync } from 'node:crypto'
import { sealKey } from '../../shared/ids/credentials.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

/** The request by which a workspace key was created. Each combination has its own key. */
interface KeyRequest {
  readonly workspaceId: string
  readonly userId: string
  readonly idempotencyKey: string
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32
/** The largest multiple of 62 within a byte. Larger bytes are skipped, because they would make the first characters likelier. */
const UNBIASED_BYTES = 248
/** On average 62 of 64 bytes are used. Fewer than 32 have a probability of 10⁻³⁷, and then the next 64 bytes are added. */
const STEP_BYTES = 64
/** The longest output of HKDF: 255 blocks of SHA-256 (RFC 5869). */
const MOST_BYTES = 255 * 32

/**
 * Derives the secret of a workspace key by HKDF-SHA-256 (RFC 5869) from the server's pepper and the salt of the key. The
 * same request always has the same secret, so that a repeated request gets it again although it is not stored.
 */
export function deriveWorkspaceKey(pepper: string, saltHex: string, request: KeyRequest): string {
  const { workspaceId, userId, idempotencyKey } = request
  // No two requests have the same JSON. A user id has at most 200 characters, and HKDF takes up to 1,024 bytes of `info`.
  const info = JSON.stringify(['penstock workspace key', workspaceId, userId, idempotencyKey])
  const salt = Buffer.from(saltHex, 'hex')
  for (let length = STEP_BYTES; length <= MOST_BYTES; length += STEP_BYTES) {
    const characters = base62Of(new Uint8Array(hkdfSync('sha256', pepper, salt, info, length)))
    if (characters.length >= LENGTH) return sealKey('workspace', characters.slice(0, LENGTH))
  }
  throw new Error('HKDF returned too few usable bytes')
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

const PREFIX_CHARACTERS = 6

/** Returns the part of a key that is stored and shown to recognize it: its kind, such as `wk_`, and three more characters. */
export function keyPrefix(key: string): string {
  return key.slice(0, PREFIX_CHARACTERS)
}
