import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { freeBuffer } from '../memory/free-buffer.ts'
import { ZSTD_MAGIC, zstdDecodedBytes } from './request-work.ts'

/**
 * Redis writes every byte of a commit to its log and syncs it, and holds it until it is stored. So a payload of requests
 * whose bodies came uncompressed is packed: one zstd frame that states its size. Neither a payload nor the frames that have
 * joined one begin with the magic number of zstd, so packed and other bytes can be beside each other.
 *
 * Level 1 packs 1 MiB of spans to a tenth in 0.8 ms and unpacks it in 0.2, on the threads of zlib. Higher levels need more
 * time for the same size.
 */
const LEVEL = 1

/** Share of the size that a packed payload has at most. One that would be larger is not worth unpacking. */
const MAX_SHARE = 7 / 8

/** Payloads are packed to less than a quarter, as a rule. The result then is one piece of memory. */
const CHUNK_SHARE = 1 / 4

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

/**
 * Returns the payload packed, or as it is if that saves little. Packs on another thread: the bytes
 * must not change meanwhile. Never rejects.
 */
export async function packPayload(payload: Buffer): Promise<Buffer> {
  try {
    const packed = await compress(payload, {
      params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
      pledgedSrcSize: payload.length,
      chunkSize: Math.ceil(payload.length * CHUNK_SHARE),
    })
    return packed.length <= payload.length * MAX_SHARE ? packed : payload
  } catch {
    // Only for lack of memory. The payload needs no more of it as it is.
    return payload
  }
}

/** Reports whether bytes from Redis are packed. */
export function isPacked(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32LE(0) === ZSTD_MAGIC
}

/** The memory of payloads. */
interface PayloadMemory {
  take(length: number): Buffer
  /** Takes over a buffer of another source, or returns false if the payload is to be copied into memory that was taken. */
  adopt(buffer: Buffer): boolean
}

/** Memory that is freed by garbage collection. */
const COLLECTED_MEMORY: PayloadMemory = { take: Buffer.allocUnsafe, adopt: () => true }

/**
 * Returns a payload from what Redis has of it: its first commit, packed or not, and the frames that have joined it. The payload
 * has memory of `memory`, unless its only part is not packed. Throws a RangeError if a packed part is damaged.
 */
export async function wholePayload(
  parts: readonly Buffer[],
  memory: PayloadMemory = COLLECTED_MEMORY,
): Promise<Buffer> {
  const [first] = parts
  if (first !== undefined && parts.length === 1 && !isPacked(first)) return first
  const plain = await Promise.all(parts.map(async part => (isPacked(part) ? unpack(part) : part)))
  const [only] = plain
  // A copy of 40 MiB would need as much again.
  if (only !== undefined && plain.length === 1 && memory.adopt(only)) return only
  const payload = memory.take(plain.reduce((sum, part) => sum + part.length, 0))
  let end = 0
  for (const [i, part] of plain.entries()) {
    end += part.copy(payload, end)
    if (part !== parts[i]) freeBuffer(part)
  }
  return payload
}

async function unpack(packed: Buffer): Promise<Buffer> {
  const bytes = zstdDecodedBytes(packed)
  if (bytes === undefined) throw new RangeError('a packed payload has no size')
  // One byte more, because zlib takes another chunk when it has filled one.
  const payload = await decompress(packed, { chunkSize: bytes + 1, maxOutputLength: bytes + 1 })
  if (payload.length !== bytes) throw new RangeError('a packed payload is incomplete')
  return payload
}
