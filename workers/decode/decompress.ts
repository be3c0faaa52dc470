import { promisify } from 'node:util'
import { gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib'
import type { ContentEncoding } from '../../shared/queue/payload-frame.ts'
import { zstdFrames } from './zstd-frames.ts'

export type Decompressed =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly reason: 'too_large_decompressed' | 'bad_compression' }

const decompressors = {
  gzip: promisify(gunzip),
  zlib: promisify(inflate),
  deflate: promisify(inflateRaw),
  zstd: promisify(zstdDecompress),
}

/** Undoes a content encoding on zlib's threads, stopping as soon as the result would pass the limit. */
export async function decompress(body: Buffer, encoding: ContentEncoding, limitBytes: number): Promise<Decompressed> {
  try {
    switch (encoding) {
      case 'identity':
        return { ok: true, body }
      case 'gzip':
        return { ok: true, body: await decompressors.gzip(body, { maxOutputLength: limitBytes }) }
      case 'deflate': {
        // RFC 9110 means zlib's format by "deflate"; many clients send the bare stream. The first bytes tell them apart.
        const inflater = isZlib(body) ? decompressors.zlib : decompressors.deflate
        return { ok: true, body: await inflater(body, { maxOutputLength: limitBytes }) }
      }
      case 'zstd':
        return await decompressZstd(body, limitBytes)
    }
  } catch (error) {
    const tooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    return { ok: false, reason: tooLarge ? 'too_large_decompressed' : 'bad_compression' }
  }
}

async function decompressZstd(body: Buffer, limitBytes: number): Promise<Decompressed> {
  const frames = zstdFrames(body)
  if (frames === undefined) return { ok: false, reason: 'bad_compression' }
  const parts: Buffer[] = []
  let restBytes = limitBytes
  for (const frame of frames) {
    const part = await decompressors.zstd(frame, { maxOutputLength: Math.max(restBytes, 1) })
    restBytes -= part.length
    if (restBytes < 0) return { ok: false, reason: 'too_large_decompressed' }
    parts.push(part)
  }
  return { ok: true, body: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts) }
}

/** CMF and FLG of RFC 1950: method 8, and a multiple of 31 together. */
function isZlib(body: Buffer): boolean {
  return body.length >= 2 && (body.readUInt8(0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0
}
