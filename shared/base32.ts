const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** The first `characters` of RFC 4648 base32 in lower case, five bits each. */
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
