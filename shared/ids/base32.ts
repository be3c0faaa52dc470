const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const VALUES = new Map([...ALPHABET].map((character, value) => [character, value]))

/** Encodes bytes in base32 (RFC 4648, lower case) and returns the first `characters`, of five bits each. */
export function base32(bytes: Uint8Array, characters: number): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    for (bits += 8; bits >= 5 && text.length < characters; bits -= 5) text += ALPHABET[(held >>> (bits - 5)) & 31]
    held &= 0xff
  }
  return text
}

/** The two base32 characters of each number of ten bits. */
export const BASE32_PAIRS: readonly string[] = Array.from({ length: 1024 }, (_, bits) => {
  return `${ALPHABET[bits >>> 5]}${ALPHABET[bits & 31]}`
})

/** Decodes the whole bytes of a base32 text and ignores the remaining bits. Returns undefined for any other text. */
export function fromBase32(text: string): Buffer | undefined {
  const bytes = Buffer.alloc(Math.floor((text.length * 5) / 8))
  let at = 0
  let bits = 0
  let held = 0
  for (const character of text) {
    const value = VALUES.get(character)
    if (value === undefined) return undefined
    held = (held << 5) | value
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = (held >>> bits) & 0xff
    held &= 0xff
  }
  return bytes
}
