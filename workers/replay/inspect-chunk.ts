import { createHash, hash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { CHUNK_DECOMPRESSED_BYTES } from '../../schemas/http/limits.ts'
import { KIB } from '../../schemas/units.ts'
import type { Lane } from '../../shared/queue/queue.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import type { ScrubberOptions } from '../../shared/scrubbing/scrubber.ts'
import { JsonLinesScanner } from './json-lines.ts'
import { LineMender } from './line-mender.ts'
import { LineScrubber } from './line-scrubber.ts'
import { wholeLines } from './whole-lines.ts'

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
  /** Number of lines without their end that are left out, if there are any. */
  readonly truncatedLines?: number
  /** Numbers of replaced values with the names of their rules, if there are any. */
  readonly scrubbed?: readonly (readonly [rule: string, values: number])[]
}

/**
 * The outcome of inspecting a chunk. The same chunk is always refused for the same reason. `mended` is the gzip of what is stored
 * instead of the body, if its lines are not stored as they were sent.
 */
export type Inspected =
  | { readonly ok: true; readonly facts: ChunkFacts; readonly mended?: Uint8Array<ArrayBuffer> }
  | { readonly ok: false; readonly reason: Reason }

/** Inspects a chunk, and replaces the values that these rules find. The body must not change meanwhile. */
export type Inspector = (
  body: Buffer,
  encoding: 'gzip' | 'identity',
  valueRules?: ScrubberOptions,
) => Promise<Inspected>

/** Inspects a chunk of a job in this lane. */
export type LaneInspector = (
  body: Buffer,
  encoding: 'gzip' | 'identity',
  lane: Lane,
  valueRules?: ScrubberOptions,
) => Promise<Inspected>

/**
 * Reads a whole chunk piece by piece and checks that it inflates within the limit and consists of JSON lines of objects.
 * The chunk is inflated on zlib's threads with one piece in memory, so a decompression bomb costs the time to inflate the
 * limit and no memory. A chunk with lines to mend or values to scrub is read a second time, so that others are not written again.
 */
export async function inspectChunk(
  body: Buffer,
  encoding: 'gzip' | 'identity',
  valueRules?: ScrubberOptions,
): Promise<Inspected> {
  const text = () => (encoding === 'gzip' ? inflate(body) : pieces(body))
  const scrubber = valueRules && new LineScrubber(valueRules)
  try {
    const inspected = await inspectAsSent(body, text(), scrubber)
    const isDecided = inspected !== undefined && (inspected.ok || inspected.reason.label !== 'not_json_lines')
    if (isDecided) return inspected
    const mended = await inspectMended(body, text(), scrubber)
    const hasEvents = mended.ok || mended.reason.label !== 'no_events'
    return hasEvents ? mended : (inspected ?? mended)
  } catch (error) {
    if (!isZlibError(error)) throw error
    return refused({ label: 'bad_compression', detail: error.message })
  }
}

/** Inspects the chunk as it was sent. Returns undefined if it has values to replace. */
async function inspectAsSent(
  body: Buffer,
  text: AsyncIterable<Buffer>,
  scrubber: LineScrubber | undefined,
): Promise<Inspected | undefined> {
  const check = new TextCheck()
  if (scrubber === undefined) for await (const piece of text) if (!check.add(piece)) break
  if (scrubber !== undefined)
    for await (const lines of wholeLines(checked(text, check))) if (scrubber.hasValues(lines)) return
  return check.end(body)
}

async function* checked(text: AsyncIterable<Buffer>, check: TextCheck): AsyncGenerator<Buffer> {
  for await (const piece of text) {
    if (!check.add(piece)) return
    yield piece
  }
}

/** Inspects the chunk with its lines mended and scrubbed. */
async function inspectMended(
  body: Buffer,
  text: AsyncIterable<Buffer>,
  scrubber: LineScrubber | undefined,
): Promise<Inspected> {
  const mender = new LineMender()
  const check = new TextCheck()
  const limitBytes = mendedLimitBytes(body)
  const parts: Buffer[] = []
  let bytes = 0
  await pipeline(
    async function* () {
      for await (const piece of mender.mend(text)) {
        for (const part of scrubber?.scrub(piece) ?? [piece]) {
          if (bytes > limitBytes || !check.add(part)) return
          yield part
        }
      }
    },
    createGzip(),
    async (gzipped: AsyncIterable<Buffer>) => {
      for await (const part of gzipped) {
        bytes += part.length
        if (bytes <= limitBytes) parts.push(part)
      }
    },
  )
  const inspected = check.end(body)
  if (mender.brokenLimit !== undefined) return refused({ label: mender.brokenLimit })
  if (scrubber?.isOverLimit) return refused({ label: 'too_many_values' })
  if (bytes > limitBytes) return refused({ label: 'too_large_decompressed' })
  if (!inspected.ok) return inspected
  const scrubbed = scrubber?.takeCounts()
  const facts = {
    ...inspected.facts,
    ...(mender.isTruncated && { truncatedLines: 1 }),
    ...(scrubbed && { scrubbed: [...scrubbed] }),
  }
  return { ok: true, facts, mended: joined(parts, bytes) }
}

/**
 * Bytes of a mended chunk, which are held in addition to the body. Events of a recorder are no larger without their packing:
 * each is packed for itself, and then written as a string in JSON. Scrubbed events have about as many bytes as before.
 */
function mendedLimitBytes(body: Buffer): number {
  return 2 * body.length + 64 * KIB
}

/** Returns memory that can be moved between threads, unlike that of `Buffer.concat`, which others may share. */
function joined(parts: readonly Buffer[], bytes: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(bytes)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Checks a text and collects its facts. */
class TextCheck {
  readonly #scanner = new JsonLinesScanner()
  readonly #sha256 = createHash('sha256')
  #bytes = 0

  /** Reads the next piece. Returns false if the text is refused. */
  add(piece: Buffer): boolean {
    this.#bytes += piece.length
    if (this.#bytes > CHUNK_DECOMPRESSED_BYTES || !this.#scanner.add(piece)) return false
    this.#sha256.update(piece)
    return true
  }

  end(body: Buffer): Inspected {
    const scanner = this.#scanner
    if (this.#bytes > CHUNK_DECOMPRESSED_BYTES) return refused({ label: 'too_large_decompressed' })
    if (!scanner.end()) return refused(reasonOf(scanner))
    if (scanner.events === 0) return refused({ label: 'no_events' })
    const facts: ChunkFacts = {
      eventCount: scanner.events,
      hasFullSnapshot: scanner.hasFullSnapshot,
      firstEventMs: Number.isFinite(scanner.firstMs) ? scanner.firstMs : undefined,
      lastEventMs: Number.isFinite(scanner.lastMs) ? scanner.lastMs : undefined,
      decompressedBytes: this.#bytes,
      sha256: this.#sha256.digest('hex'),
      sentSha256: hash('sha256', body),
    }
    return { ok: true, facts }
  }
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
