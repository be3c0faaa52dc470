const OTHER = 0xff
const SEXTETS = new Uint8Array(256).fill(OTHER)
for (const [value, letter] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  SEXTETS[letter.charCodeAt(0)] = value
}
SEXTETS[0x2d] = 62
SEXTETS[0x5f] = 63

const PADDING = 0x3d

/**
 * Decodes `[start, end)` to position `at` of `target`. Accepts the standard and the URL-safe alphabet, with or without
 * padding (RFC 4648). Returns the end of the bytes in `target`, or -1. `Buffer.from` would skip invalid characters.
 */
export function decodeBase64(text: Buffer, start: number, end: number, target: Buffer, at: number): number {
  let last = end
  while (last > start && last > end - 2 && text[last - 1] === PADDING) last--
  if ((last - start) % 4 === 1 || (last < end && (end - start) % 4 !== 0)) return -1
  let to = at
  let bits = 0
  let held = 0
  for (let pos = start; pos < last; pos++) {
    const sextet = SEXTETS[text[pos] as number] as number
    if (sextet === OTHER) return -1
    bits = ((bits << 6) | sextet) & 0xffff
    held += 6
    if (held >= 8) {
      held -= 8
      target[to++] = (bits >> held) & 0xff
    }
  }
  return to
}
