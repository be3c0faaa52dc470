/** Hash slots of a Redis Cluster. */
const SLOTS = 16_384

const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** Returns the slot in which Redis Cluster keeps the keys with this hash tag. The tag is ASCII. */
export function hashSlot(tag: string): number {
  return crc16(tag) % SLOTS
}

function crc16(text: string): number {
  let crc = 0
  for (let i = 0; i < text.length; i++) {
    crc = ((crc << 8) ^ (CRC16[(crc >> 8) ^ text.charCodeAt(i)] as number)) & 0xffff
  }
  return crc
}

/** Zero bytes in place of a suffix. */
const NEUTRAL = '\0\0\0\0'
const SUFFIX_LENGTH = NEUTRAL.length

let suffixes: readonly string[] | undefined

/**
 * Returns the tag that begins with `prefix`, ends with four letters or digits, and has this slot. The same arguments always
 * have the same result. CRC16 is linear: the slot of prefix and suffix is that of the prefix before four zero bytes, combined
 * with that of the suffix alone.
 */
export function tagInSlot(prefix: string, slot: number): string {
  suffixes ??= suffixesBySlot()
  return prefix + (suffixes[(crc16(prefix + NEUTRAL) ^ slot) % SLOTS] as string)
}

/** Returns the first suffix in alphabetical order for each slot. Takes some milliseconds. */
function suffixesBySlot(): readonly string[] {
  const bySlot: string[] = new Array(SLOTS)
  let missing = SLOTS
  for (let i = 0; missing > 0; i++) {
    const suffix = i.toString(36).padStart(SUFFIX_LENGTH, '0')
    const slot = hashSlot(suffix)
    if (bySlot[slot] !== undefined) continue
    bySlot[slot] = suffix
    missing--
  }
  return bySlot
}
