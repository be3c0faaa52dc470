import { hkdfSync } from 'node:crypto'
import { sealKey } from '../../shared/ids/credentials.ts'

/** What tells one request for a key from all others. */
export interface KeyOrigin {
  readonly workspaceId: string
  readonly userId: string
  readonly idempotencyKey: string
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 32
/** The largest multiple of 62 that a byte can reach: what lies above would make the first characters likelier. */
const UNBIASED_BYTES = 248
/** 62 of 64 bytes are used on average; fewer than 32 is an event of 10⁻³⁷, and then the next 64 are added. */
const STEP_BYTES = 64
/** RFC 5869: 255 blocks of SHA-256. */
const MOST_BYTES = 255 * 32

/**
 * The secret of a workspace key, by HKDF-SHA-256 (RFC 5869) from the server's pepper and the key's own salt: the same for
 * the same origin as often as it is asked for, so that a repeated request gets it again without its being stored.
 */
export function deriveWorkspaceKey(pepper: string, saltHex: string, origin: KeyOrigin): string {
  const { workspaceId, userId, idempotencyKey } = origin
  // As JSON no two origins have the same text. A user id has at most 200 characters, and HKDF takes 1,024 bytes of it.
  const info = JSON.stringify(['penstock workspace key', workspaceId, userId, idempotencyKey])
  const salt = Buffer.from(saltHex, 'hex')
  for (let length = STEP_BYTES; length <= MOST_BYTES; length += STEP_BYTES) {
    const characters = base62Of(new Uint8Array(hkdfSync('sha256', pepper, salt, info, length)))
    if (characters.length >= LENGTH) return sealKey('workspace', characters.slice(0, LENGTH))
  }
  throw new Error('HKDF gave no usable bytes')
}

/** Each byte is one character, or none. */
function base62Of(bytes: Uint8Array): string {
  let characters = ''
  for (const byte of bytes) if (byte < UNBIASED_BYTES) characters += ALPHABET[byte % ALPHABET.length]
  return characters
}
