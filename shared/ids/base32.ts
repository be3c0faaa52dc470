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

const ALPHABET_BYTES = Buffer.from(ALPHABET)

/** Writes the four base32 characters of a number of twenty bits. */
export function writeBase32(target: Uint8Array, at: number, bits: number): void {
  target[at] = ALPHABET_BYTES[(bits >>> 15) & 31] as number
  target[at + 1] = ALPHABET_BYTES[(bits >>> 10) & 31] as number
  target[at + 2] = ALPHABET_BYTES[(bits >>> 5) & 31] as number
  target[at + 3] = ALPHABET_BYTES[bits & 31] as number
}

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
