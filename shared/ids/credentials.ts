import { createHash, randomInt } from 'node:crypto'
import { KEY_ALPHABET, KEY_RANDOM_LENGTH, type KeyKind, sealKey } from '../../schemas/records/key-form.ts'

/** Generates a key with 190 random bits. Only the digest (`digestOf`) of a secret key is stored. */
export function generateKey(kind: KeyKind): string {
  let random = ''
  for (let i = 0; i < KEY_RANDOM_LENGTH; i++) random += KEY_ALPHABET[randomInt(KEY_ALPHABET.length)]
  return sealKey(kind, random)
}

/** Returns the SHA-256 of a key in hex. It is stored and used for lookups, so that secrets are never compared directly. */
export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}
