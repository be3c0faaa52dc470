import { promisify } from 'node:util'
import { gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib'
import { KIB, MIB } from '../../schemas/units.ts'
import { freeBuffer } from '../../shared/memory/free-buffer.ts'
import type { ContentEncoding } from '../../shared/queue/payload-frame.ts'
import { statedDecodedBytes } from '../../shared/queue/request-work.ts'
import { errorMessage, TransientError } from '../../shared/runtime/errors.ts'

/** The decompressed body, or the reason why there is none. */
type Decompressed =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly reason: 'too_large_decompressed' | 'bad_compression' }

const decompressors = {
  gzip: promisify(gunzip),
  zlib: promisify(inflate),
  deflate: promisify(inflateRaw),
  zstd: promisify(zstdDecompress),
}

/** From this limit on, the memory for the whole result is taken at once. */
const LARGE_BYTES = 16 * MIB
/** Decoded size over encoded size that is expected at most, because a body may state any size. */
const MOST_EXPECTED_RATIO = 32
/** The ratio that is expected of a body which states no size. */
const USUAL_RATIO = 8
/** The chunks of zlib by default. */
const LEAST_CHUNK_BYTES = 16 * KIB

/**
 * Decompresses a body on the threads of zlib and stops as soon as the result would exceed `limitBytes`. With a large limit,
 * zlib writes into memory for all of it, whose pages are real only once they are written to. Otherwise zlib would collect
 * small chunks, and have everything in memory twice while it joins them. With a smaller limit, it writes into memory of the
 * size that the body states: each chunk is a way to a thread and back. Throws a TransientError if memory is short: the body may
 * be a good one.
 */
export async function decompress(body: Buffer, encoding: ContentEncoding, limitBytes: number): Promise<Decompressed> {
  try {
    switch (encoding) {
      case 'identity':
        return { ok: true, body }
      case 'gzip':
        return { ok: true, body: await decompressors.gzip(body, optionsFor(body, encoding, limitBytes)) }
      case 'deflate': {
        // RFC 9110 defines "deflate" as the zlib format, but many clients send the bare stream. The first bytes differ.
        const inflater = isZlib(body) ? decompressors.zlib : decompressors.deflate
        return { ok: true, body: await inflater(body, optionsFor(body, encoding, limitBytes)) }
      }
      case 'zstd':
        return await decompressZstd(body, limitBytes)
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') return { ok: false, reason: 'too_large_decompressed' }
    if (isFaultOfBytes(code)) return { ok: false, reason: 'bad_compression' }
    throw new TransientError(`a body could not be decompressed: ${errorMessage(error)}`, { cause: error })
  }
}

/** Returns whether this code of zlib or zstd comes from the bytes. All others come from the process, mostly from its memory. */
function isFaultOfBytes(code: string): boolean {
  if (code === 'Z_DATA_ERROR' || code === 'Z_BUF_ERROR' || code === 'Z_NEED_DICT') return true
  return code.startsWith('ZSTD_error_') && code !== 'ZSTD_error_memory_allocation'
}

/** One byte more than the expected size, because zlib takes another chunk when it has filled one. */
function optionsFor(body: Buffer, encoding: ContentEncoding, limitBytes: number) {
  const stated = statedDecodedBytes(encoding, body, limitBytes) ?? USUAL_RATIO * body.length
  const expected = Math.max(LEAST_CHUNK_BYTES, Math.min(stated, MOST_EXPECTED_RATIO * body.length, limitBytes))
  return { maxOutputLength: limitBytes, chunkSize: 1 + (limitBytes < LARGE_BYTES ? expected : limitBytes) }
}

async function decompressZstd(body: Buffer, limitBytes: number): Promise<Decompressed> {
  const frames = zstdFrames(body)
  if (frames === undefined) return { ok: false, reason: 'bad_compression' }
  if (frames.length === 1)
    return { ok: true, body: await decompressors.zstd(frames[0] as Buffer, optionsFor(body, 'zstd', limitBytes)) }
  const joined = Buffer.allocUnsafeSlow(limitBytes)
  let length = 0
  for (const frame of frames) {
    const part = await decompressors.zstd(frame, optionsFor(frame, 'zstd', Math.max(limitBytes - length, 1)))
    if (length + part.length > limitBytes) return { ok: false, reason: 'too_large_decompressed' }
    length += part.copy(joined, length)
    freeBuffer(part)
  }
  return { ok: true, body: joined.subarray(0, length) }
}

/** Checks CMF and FLG of RFC 1950: the method is 8, and both bytes together are a multiple of 31. */
function isZlib(body: Buffer): boolean {
  return body.length >= 2 && (body.readUInt8(0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0
}

/** Format constants of zstd (RFC 8878, section 3.1). */
const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const DICTIONARY_ID_BYTES = [0, 1, 2, 4]
const RLE_BLOCK = 1

/** No encoder writes more frames. An empty frame has 9 bytes and costs 40 µs, so 20 MiB of them would take 100 s. */
const MAX_ZSTD_FRAMES = 1_024

/**
 * Splits a zstd stream into its frames (RFC 8878, section 3.1). Returns undefined if the stream does not end with a
 * whole frame or has more than MAX_ZSTD_FRAMES. This is needed because `zstdDecompress` of zlib returns the readable
 * part of a truncated frame and ignores everything after the first frame. Both would lose data silently (Node 22.23).
 */
function zstdFrames(stream: Buffer): Buffer[] | undefined {
  const frames: Buffer[] = []
  let at = 0
  while (at < stream.length) {
    const end = endOfFrame(stream, at)
    if (end === undefined || end.at > stream.length) return undefined
    if (!end.skippable && frames.push(stream.subarray(at, end.at)) > MAX_ZSTD_FRAMES) return undefined
    at = end.at
  }
  return frames.length === 0 ? undefined : frames
}

/** Finds the end of the zstd frame at `start`; undefined if the frame is cut short or is not a zstd frame. */
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
