import { createHash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 32
const CHECKSUM_LENGTH = 6
const PREFIX_LENGTH = 3

/** `pk_`, `sk_` or `wk_`, 32 base62 characters, and the CRC32 of all before it as 6 base62 characters (CONTRACT section 2). */
export const KEY_LENGTH = PREFIX_LENGTH + RANDOM_LENGTH + CHECKSUM_LENGTH

export type KeyKind = 'public' | 'secret' | 'workspace'

const PREFIXES: Record<KeyKind, string> = { public: 'pk_', secret: 'sk_', workspace: 'wk_' }

/** A fresh key with 190 bits of randomness. Its text is shown once; only `digestOf` it is stored. */
export function generateKey(kind: KeyKind): string {
  let random = ''
  for (let i = 0; i < RANDOM_LENGTH; i++) random += ALPHABET[randomInt(ALPHABET.length)]
  return sealKey(kind, random)
}

/** Puts prefix and checksum around 32 base62 characters, for keys whose randomness is derived elsewhere. */
export function sealKey(kind: KeyKind, random: string): string {
  const unsealed = PREFIXES[kind] + random
  return unsealed + checksum(unsealed)
}

/** True for a key of this kind whose checksum holds: only such a text is worth a lookup. */
export function isWellFormedKey(kind: KeyKind, text: string): boolean {
  if (text.length !== KEY_LENGTH || !text.startsWith(PREFIXES[kind])) return false
  const body = text.slice(0, KEY_LENGTH - CHECKSUM_LENGTH)
  return /^[0-9A-Za-z_]+$/.test(text) && checksum(body) === text.slice(KEY_LENGTH - CHECKSUM_LENGTH)
}

/** SHA-256 of a key in hex: what is stored, and what a lookup goes by, so that no secret is ever compared byte by byte. */
export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits
    rest = Math.floor(rest / ALPHABET.length)
  }
  return digits
}
