import { createHash, hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import { CHUNK_DECOMPRESSED_BYTES } from '../../schemas/http/limits.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import { JsonLinesScanner } from './json-lines.ts'

/** Bytes that are inflated and checked at a time. */
const PIECE_BYTES = 128 * 1024

/** Facts that are read from the bytes of a chunk. */
export interface ChunkFacts {
  readonly eventCount: number
  readonly hasFullSnapshot: boolean
  /** Undefined if no event has a timestamp. */
  readonly firstEventMs: number | undefined
  readonly lastEventMs: number | undefined
  readonly decompressedBytes: number
  /** SHA-256 of the decompressed bytes, in hex. */
  readonly sha256: string
  /** SHA-256 of the bytes as sent, in hex. */
  readonly sentSha256: string
}

/** The outcome of inspecting a chunk. The same chunk is always refused for the same reason. */
export type Inspected =
  | { readonly ok: true; readonly facts: ChunkFacts }
  | { readonly ok: false; readonly reason: Reason }

/** Inspects a chunk. The body must not change meanwhile. */
export type Inspector = (body: Buffer, encoding: 'gzip' | 'identity') => Promise<Inspected>

/** Inspects a chunk of a job in this lane. */
export type LaneInspector = (...chunk: [...Parameters<Inspector>, lane: Lane]) => Promise<Inspected>

/**
 * Reads a whole chunk piece by piece and checks that it inflates within the limit and consists of JSON lines of objects.
 * The chunk is inflated on zlib's threads with one piece in memory, so a decompression bomb costs the time to inflate the
 * limit and no memory.
 */
export async function inspectChunk(body: Buffer, encoding: 'gzip' | 'identity'): Promise<Inspected> {
  const scanner = new JsonLinesScanner()
  const text = createHash('sha256')
  let decompressedBytes = 0
  try {
    for await (const piece of encoding === 'gzip' ? inflate(body) : pieces(body)) {
      decompressedBytes += piece.length
      if (decompressedBytes > CHUNK_DECOMPRESSED_BYTES) return refused({ label: 'too_large_decompressed' })
      if (!scanner.add(piece)) return refused(reasonOf(scanner))
      text.update(piece)
    }
  } catch (error) {
    if (!isZlibError(error)) throw error
    return refused({ label: 'bad_compression', detail: error.message })
  }
  if (!scanner.end()) return refused(reasonOf(scanner))
  if (scanner.events === 0) return refused({ label: 'no_events' })
  const facts: ChunkFacts = {
    eventCount: scanner.events,
    hasFullSnapshot: scanner.hasFullSnapshot,
    firstEventMs: Number.isFinite(scanner.firstMs) ? scanner.firstMs : undefined,
    lastEventMs: Number.isFinite(scanner.lastMs) ? scanner.lastMs : undefined,
    decompressedBytes,
    sha256: text.digest('hex'),
    sentSha256: hash('sha256', body),
  }
  return { ok: true, facts }
}

const refused = (reason: Reason): Inspected => ({ ok: false, reason })

function reasonOf({ brokenLimit, fault }: JsonLinesScanner): Reason {
  return brokenLimit === undefined ? { label: 'not_json_lines', detail: fault } : { label: brokenLimit }
}

/** Returns the inflated pieces. Leaving the loop over them stops inflating. */
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

/** Returns whether the bytes are invalid. Other errors, such as `Z_MEM_ERROR`, do not come from the bytes. */
function isZlibError(error: unknown): error is Error {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'Z_DATA_ERROR' || code === 'Z_BUF_ERROR' || code === 'Z_NEED_DICT'
}
