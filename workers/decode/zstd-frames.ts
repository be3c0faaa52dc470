/**
 * Splits a zstd stream into its frames (RFC 8878 section 3.1), or answers undefined when it does not end with a whole
 * one. Needed because zlib's one-shot `zstdDecompress` gives out a frame that is cut short as far as it goes, and
 * forgets whatever follows the first frame: both would lose data in silence (Node 22.23). Answers undefined for more
 * frames than any encoder makes, too: an empty one has 9 bytes and costs 40 µs, so 20 MiB of them 100 seconds.
 */
export function zstdFrames(stream: Buffer): Buffer[] | undefined {
  const frames: Buffer[] = []
  let at = 0
  while (at < stream.length) {
    const end = endOfFrame(stream, at)
    if (end === undefined || end.at > stream.length) return undefined
    if (!end.skippable && frames.push(stream.subarray(at, end.at)) > MAX_FRAMES) return undefined
    at = end.at
  }
  return frames.length === 0 ? undefined : frames
}

const MAX_FRAMES = 1_024
const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const DICTIONARY_ID_BYTES = [0, 1, 2, 4]
const RLE_BLOCK = 1

function endOfFrame(stream: Buffer, start: number): { at: number; skippable: boolean } | undefined {
  if (start + 8 > stream.length) return undefined
  const magic = stream.readUInt32LE(start)
  if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
    return { at: start + 8 + stream.readUInt32LE(start + 4), skippable: true }
  }
  if (magic !== MAGIC) return undefined
  const descriptor = stream.readUInt8(start + 4)
  const singleSegment = (descriptor >> 5) & 1
  const contentSizeFlag = descriptor >> 6
  const contentSizeBytes = contentSizeFlag === 0 ? singleSegment : 1 << contentSizeFlag
  let at = start + 5 + (1 - singleSegment) + (DICTIONARY_ID_BYTES[descriptor & 3] as number) + contentSizeBytes
  for (let last = false; !last; ) {
    if (at + 3 > stream.length) return undefined
    const header = stream.readUIntLE(at, 3)
    last = (header & 1) === 1
    at += 3 + (((header >> 1) & 3) === RLE_BLOCK ? 1 : header >> 3)
  }
  const hasChecksum = (descriptor >> 2) & 1
  return { at: at + 4 * hasChecksum, skippable: false }
}
