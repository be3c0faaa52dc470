import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import { JsonLinesScanner } from './json-lines.ts'

/** A chunk may inflate to so much (CONTRACT 4.3). */
const DECOMPRESSED_LIMIT_BYTES = 100 * 1024 * 1024
/** One turn of the event loop: at 100 MB/s a millisecond, so that locks are renewed in between. */
const PIECE_BYTES = 128 * 1024

/** What a chunk's own bytes tell. */
export interface ChunkFacts {
  readonly eventCount: number
  readonly hasFullSnapshot: boolean
  /** Undefined where no event tells its time. */
  readonly firstEventMs: number | undefined
  readonly lastEventMs: number | undefined
  readonly decompressedBytes: number
  /** Of the decompressed bytes, in hex. */
  readonly sha256: string
}

export type Inspected =
  | { readonly ok: true; readonly facts: ChunkFacts }
  /** A label, or a label and what follows a colon. The same chunk is always refused for the same reason. */
  | { readonly ok: false; readonly reason: string }

/**
 * Reads a chunk through, piece by piece: that it inflates within the limit, and that it is JSON lines of objects. It is
 * inflated on zlib's threads, and holds one piece at a time: a bomb costs what the limit takes to inflate, and no memory.
 */
export async function inspectChunk(body: Buffer, encoding: 'gzip' | 'identity'): Promise<Inspected> {
  const scanner = new JsonLinesScanner()
  const hash = createHash('sha256')
  let decompressedBytes = 0
  try {
    for await (const piece of encoding === 'gzip' ? inflate(body) : pieces(body)) {
      decompressedBytes += piece.length
      if (decompressedBytes > DECOMPRESSED_LIMIT_BYTES) return { ok: false, reason: 'too_large_decompressed' }
      if (!scanner.add(piece)) return { ok: false, reason: `not_json_lines: ${scanner.fault}` }
      hash.update(piece)
    }
  } catch (error) {
    if (!isZlibError(error)) throw error
    return { ok: false, reason: `bad_compression: ${error.message}` }
  }
  if (!scanner.end()) return { ok: false, reason: `not_json_lines: ${scanner.fault}` }
  if (scanner.events === 0) return { ok: false, reason: 'no_events' }
  const facts: ChunkFacts = {
    eventCount: scanner.events,
    hasFullSnapshot: scanner.hasFullSnapshot,
    firstEventMs: Number.isFinite(scanner.firstMs) ? scanner.firstMs : undefined,
    lastEventMs: Number.isFinite(scanner.lastMs) ? scanner.lastMs : undefined,
    decompressedBytes,
    sha256: hash.digest('hex'),
  }
  return { ok: true, facts }
}

/** Leaving the loop over it ends the inflating. */
function inflate(body: Buffer): AsyncIterable<Buffer> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES })
  gunzip.end(body)
  return gunzip
}

async function* pieces(body: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    if (at > 0) await nextTurn()
    yield body.subarray(at, at + PIECE_BYTES)
  }
}

/** Of the bytes; `Z_MEM_ERROR` and the like are not their fault. */
function isZlibError(error: unknown): error is Error {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'Z_DATA_ERROR' || code === 'Z_BUF_ERROR' || code === 'Z_NEED_DICT'
}
