import { gunzip, inflate, inflateRaw, zstdDecompress } from 'node:zlib'
import type { ContentEncoding } from '../shared/payload-frame.ts'

export type Decompressed =
  | { ok: true; body: Buffer }
  | { ok: false; reason: 'too_large_decompressed' | 'bad_compression' }

type Decompressor = (
  body: Buffer,
  options: { maxOutputLength: number },
  done: (error: Error | null, result: NonSharedBuffer) => void,
) => void

const DECOMPRESSORS: Record<Exclude<ContentEncoding, 'identity'>, Decompressor> = {
  gzip: gunzip,
  // RFC 9110 means zlib's format by "deflate"; many clients send the bare stream. The first byte tells them apart.
  deflate: (body, options, done) => (isZlib(body) ? inflate : inflateRaw)(body, options, done),
  zstd: zstdDecompress,
}

/** Undoes a content encoding on zlib's threads, stopping as soon as the result would pass the limit. */
export function decompress(body: Buffer, encoding: ContentEncoding, limitBytes: number): Promise<Decompressed> {
  if (encoding === 'identity') return Promise.resolve({ ok: true, body })
  return new Promise(resolve => {
    DECOMPRESSORS[encoding](body, { maxOutputLength: limitBytes }, (error, result) => {
      if (error === null) resolve({ ok: true, body: result })
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
        resolve({ ok: false, reason: 'too_large_decompressed' })
      } else resolve({ ok: false, reason: 'bad_compression' })
    })
  })
}

/** CMF and FLG of RFC 1950: method 8, and a multiple of 31 together. */
function isZlib(body: Buffer): boolean {
  if (body.length < 2) return false
  return (body.readUInt8(0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0
}
