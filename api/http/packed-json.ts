import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip } from 'node:zlib'
import type { Header, Reply } from '../../shared/http/route.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { okJson } from './outcome.ts'

/** A JSON text that may be compressed. */
export interface PackedJson {
  readonly bytes: Uint8Array
  readonly isGzip: boolean
}

/** How a JSON text is packed. */
export interface PackOptions {
  /** Whether the client reads a text that is compressed with gzip. */
  readonly acceptsGzip: boolean
  /** Most bytes of a text that is not compressed. */
  readonly plainLimitBytes: number
  readonly signal: AbortSignal
}

/**
 * Joins the pieces of a JSON text, compressed if the client reads that, off the main thread. Returns undefined if the client
 * does not and the text is over the limit. A piece is made when the one before it is packed, so the whole text is never in
 * memory when it is compressed. Throws a TransientError when the signal fires.
 */
export async function packJson(
  pieces: Iterable<string>,
  { acceptsGzip, plainLimitBytes, signal }: PackOptions,
): Promise<PackedJson | undefined> {
  const chunks: Buffer[] = []
  let bytesLeft = acceptsGzip ? Number.POSITIVE_INFINITY : plainLimitBytes
  const keep = async (packed: AsyncIterable<Buffer>) => {
    for await (const chunk of packed) {
      bytesLeft -= chunk.length
      if (bytesLeft < 0) return
      chunks.push(chunk)
    }
  }
  const source = Readable.from(pieces, { objectMode: false })
  try {
    if (acceptsGzip) await pipeline(source, createGzip({ level: constants.Z_BEST_SPEED }), keep, { signal })
    else await pipeline(source, keep, { signal })
  } catch (cause) {
    if (!signal.aborted) throw cause
    throw new TransientError('the response was not ready in time', { cause })
  }
  return bytesLeft < 0 ? undefined : { bytes: Buffer.concat(chunks), isGzip: acceptsGzip }
}

const VARY: Header = ['vary', 'accept-encoding']
const GZIP: Header = ['content-encoding', 'gzip']

/** Returns the reply of a packed text. */
export function packedReply({ bytes, isGzip }: PackedJson): Reply {
  const { headers = [], ...reply } = okJson(bytes)
  return { ...reply, headers: [...headers, VARY, ...(isGzip ? [GZIP] : [])] }
}

/**
 * Returns whether the header `Accept-Encoding` accepts gzip. An absent header accepts it too, but not every client without one
 * does.
 */
export function acceptsGzip(header: string | undefined): boolean {
  return /(?:^|[\s,])gzip\s*(?:$|,|;\s*q=(?!0(?:\.0*)?\s*(?:$|,)))/i.test(header ?? '')
}
