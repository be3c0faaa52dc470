/**
 * Returns MurmurHash3 (x86, 32 bits, seed 0) of the id of a trace: a number below 2³². It decides which traces rules keep, so it is
 * the same in every process and version, and for spans and log records. Reads `[start, end)` of `bytes`.
 */
export function traceHash(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let hash = 0
  let at = start
  for (; at + 4 <= end; at += 4) {
    hash ^= scrambled(
      byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8) | (byteAt(bytes, at + 2) << 16) | (byteAt(bytes, at + 3) << 24),
    )
    hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe654_6b64
  }
  let rest = 0
  for (let i = end - 1; i >= at; i--) rest = (rest << 8) | byteAt(bytes, i)
  hash ^= scrambled(rest)
  return finished(hash ^ (end - start))
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] as number
}

function scrambled(word: number): number {
  const mixed = Math.imul(word, 0xcc9e_2d51)
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b87_3593)
}

function finished(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
