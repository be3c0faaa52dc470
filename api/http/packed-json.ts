import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
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
 * does not and the text is over the limit. A piece is requested when the one before it is packed, so the whole text is never in
 * memory when it is compressed, and pieces may share their memory. Throws a TransientError when the signal fires.
 */
export async function packJson(
  pieces: Iterable<Uint8Array>,
  { acceptsGzip, plainLimitBytes, signal }: PackOptions,
): Promise<PackedJson | undefined> {
  if (acceptsGzip) return { bytes: await gzipped(pieces, signal), isGzip: true }
  const chunks: Buffer[] = []
  let bytesLeft = plainLimitBytes
  for (const piece of pieces) {
    bytesLeft -= piece.length
    if (bytesLeft < 0) return undefined
    chunks.push(Buffer.from(piece))
    await nextTurn()
    if (signal.aborted) throw late(signal)
  }
  return { bytes: Buffer.concat(chunks), isGzip: false }
}

async function gzipped(pieces: Iterable<Uint8Array>, signal: AbortSignal): Promise<Buffer> {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED })
  const chunks: Buffer[] = []
  gzip.on('data', chunk => chunks.push(chunk))
  const writeAll = async () => {
    for (const piece of pieces) {
      await new Promise<void>((resolve, reject) => gzip.write(piece, error => (error ? reject(error) : resolve())))
      if (signal.aborted) throw late(signal)
    }
    gzip.end()
  }
  try {
    await Promise.all([writeAll(), once(gzip, 'end')])
  } finally {
    gzip.destroy()
  }
  return Buffer.concat(chunks)
}

const late = (signal: AbortSignal) => new TransientError('the response was not ready in time', { cause: signal.reason })

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
