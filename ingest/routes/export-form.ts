import type { ContentEncoding } from '../../shared/queue/payload-frame.ts'
import { protobufFault } from '../admission/protobuf-framing.ts'

/** Most blanks before the first brace of a JSON body that are looked at. No encoder writes any. */
const MAX_BLANKS = 64 * 1024
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]
const BRACE = 0x7b

/**
 * Returns the fault of an export that its first bytes show, or its framing if it is not compressed. Nothing is decompressed
 * or decoded here: workers find all other faults (docs/api/otlp.md#drain).
 */
export function formFault(isJson: boolean, encoding: ContentEncoding, body: Buffer): string | undefined {
  if (encoding !== 'identity') {
    return BEGINNINGS[encoding](body)
      ? undefined
      : `content-encoding is ${encoding}, but the body does not begin as ${encoding}`
  }
  return isJson ? jsonFault(body) : protobufFault(body)
}

/** Reports for each compression whether a body begins as it must. */
const BEGINNINGS: Readonly<Record<Exclude<ContentEncoding, 'identity'>, (body: Buffer) => boolean>> = {
  gzip: body => body[0] === 0x1f && body[1] === 0x8b,
  // The magic number of a frame or of a skippable frame (RFC 8878, section 3.1).
  zstd: body => body.length >= 4 && (body.readUInt32LE(0) === 0xfd2fb528 || body.readUInt32LE(0) >>> 4 === 0x184d2a5),
  deflate: body => isZlib(body) || isBareDeflate(body),
}

/** Checks CMF and FLG of RFC 1950: the method is 8, and both bytes together are a multiple of 31. */
function isZlib(body: Buffer): boolean {
  return body.length >= 2 && (body.readUInt8(0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0
}

/**
 * Checks the first block of a stream without the header of zlib, which workers accept because many clients send it (RFC
 * 1951): its type is not the reserved one, and the length of a stored block comes with its complement.
 */
function isBareDeflate(body: Buffer): boolean {
  if (body.length === 0) return false
  const type = (body.readUInt8(0) >> 1) & 3
  if (type === 3) return false
  return type !== 0 || (body.length >= 5 && (body.readUInt16LE(1) ^ body.readUInt16LE(3)) === 0xffff)
}

function jsonFault(body: Buffer): string | undefined {
  const start = BYTE_ORDER_MARK.every((byte, i) => body[i] === byte) ? BYTE_ORDER_MARK.length : 0
  const end = Math.min(body.length, start + MAX_BLANKS)
  for (let at = start; at < end; at++) {
    const byte = body[at]
    if (byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d) continue
    return byte === BRACE ? undefined : NOT_JSON
  }
  return end < body.length ? `the body has more than ${MAX_BLANKS} blanks before its first brace` : NOT_JSON
}

const NOT_JSON = 'the body is not a JSON object: it must begin with {'
