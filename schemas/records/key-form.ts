import { crc32 } from 'node:zlib'

/** Characters of a key, in the order of their values. */
export const KEY_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Number of random characters of a key. */
export const KEY_RANDOM_LENGTH = 32
const CHECKSUM_LENGTH = 6
const PREFIX_LENGTH = 3

/**
 * Length of a key: `pk_`, `sk_` or `wk_`, 32 base62 characters, then the CRC32 of these as 6 base62 characters
 * (`docs/api/credentials.md#credentials`).
 */
export const KEY_LENGTH = PREFIX_LENGTH + KEY_RANDOM_LENGTH + CHECKSUM_LENGTH

/** Kind of a key: of a surface (public or secret) or of a workspace. */
export type KeyKind = 'public' | 'secret' | 'workspace'

const PREFIXES: Record<KeyKind, string> = { public: 'pk_', secret: 'sk_', workspace: 'wk_' }

/** Adds prefix and checksum to 32 base62 characters. */
export function sealKey(kind: KeyKind, random: string): string {
  const unsealed = PREFIXES[kind] + random
  return unsealed + checksum(unsealed)
}

/** Returns whether the text is a key of this kind with a correct checksum. Any other text needs no lookup. */
export function isWellFormedKey(kind: KeyKind, text: string): boolean {
  if (text.length !== KEY_LENGTH || !text.startsWith(PREFIXES[kind])) return false
  const body = text.slice(0, KEY_LENGTH - CHECKSUM_LENGTH)
  return /^[0-9A-Za-z_]+$/.test(text) && checksum(body) === text.slice(KEY_LENGTH - CHECKSUM_LENGTH)
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = KEY_ALPHABET[rest % KEY_ALPHABET.length] + digits
    rest = Math.floor(rest / KEY_ALPHABET.length)
  }
  return digits
}
