import { randomUUID } from 'node:crypto'
import { IngestLogTable } from '../../clickhouse/tables/ingest-log-table.ts'
import { EXPORT_DECOMPRESSED_BYTES } from '../../schemas/http/limits.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { freeBuffer } from '../../shared/memory/free-buffer.ts'
import { replayedFrom } from '../../shared/queue/letters/replayed-letter.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { describeError, isMemoryError, TransientError } from '../../shared/runtime/errors.ts'
import { DECODER_VERSION } from '../decode/decoder-version.ts'
import { decompress } from '../decode/decompress.ts'
import type { LetterQuota } from '../queue/letter-quota.ts'
import type { PageClaims } from '../queue/page-claims.ts'
import { type Formation, labelAt, RefusedCollector } from '../queue/payloads/batch-record.ts'
import type { LockedJob, Move } from '../queue/payloads/payload-store.ts'
import { positionsToReplay } from '../queue/settled-letter.ts'
import { BatchLetters, type JobNotes } from './batch-letters.ts'
import { BatchStats } from './batch-stats.ts'
import { countOutcome, countPassedOn, type Decoded, NOT_DECODED } from './count-outcome.ts'
import { type EarlierOutcome, isDecidedBefore, outcomeInPart, type Refusal } from './earlier-outcome.ts'
import type { JobLimits } from './job-limits.ts'
import { lostRecords } from './log-entries.ts'
import { type PassedOnRequest, readPassedOn } from './passed-on.ts'
import { blocksOf, type RowBatch, type SelectedFrame, type TableBlock } from './row-batch.ts'
import { shardBlocks } from './shard-blocks.ts'

/** The queue of the jobs of a batch. */
export interface BatchSource {
  readonly queue: QueueName
  /** The name of these requests in `ingest_log`. Undefined if the log has no rows for them. */
  readonly kind: string | undefined
  /** Bounds the dead letters of a surface. Without it, all are kept. */
  readonly letterQuota?: LetterQuota | undefined
  /** Returns the number of shards that new rows are divided between. Without it, there is one server. */
  readonly activeShards?: (() => Promise<number>) | undefined
  /** Finds requests that a page has sent again. Without it, all are stored. */
  readonly pageClaims?: PageClaims | undefined
  /** Called with the decoded size of a large request and the time that decoding it took. */
  readonly onDecoded?: (frame: PayloadFrame, decodedBytes: number, decodeMs: number) => void
}

/** Smaller requests are not measured: their work follows from their number. */
const MEASURED_BYTES = 16 * 1024

/** The outcome of a job in a batch. `again`: the batch was abandoned before it was named, so the job must be looked at again. */
type JobOutcome = 'stored' | 'again'

/** A job in a batch. */
export interface PooledJob extends LockedJob {
  readonly frames: number
  readonly outcome: Promise<JobOutcome>
  resolve(outcome: JobOutcome): void
  reject(error: unknown): void
}

/**
 * Why a job was not added. `split`: its requests are too many or too large together. `large`: it has one request, with a
 * body that must be decoded while no other large body is.
 */
export type NotAdded = 'split' | 'large'

/** Options of a batch. */
export interface BatchOptions extends EarlierOutcome {
  /** The id under which the batch is named; a new one by default. Object keys of dead letters derive from it. */
  readonly id?: string | undefined
  /** Number of shards that its rows are divided between. */
  readonly shards?: number | undefined
  /** Rules by which it was formed before. */
  readonly rules?: Formation['rules']
}

/** A request that was appended. */
interface Appended {
  readonly decoded?: Decoded
  readonly refusal: Refusal | 'large' | undefined
}

const NONE: ReadonlySet<number> = new Set()
/** Nothing of a request is stored whose page has sent it before. */
const REPEATED: Appended = {
  decoded: { ...NOT_DECODED, rejected: { repeated_request: { count: 1, indexes: [] } } },
  refusal: undefined,
}

/** Label of requests whose outcome is logged when their exceptions are stored. */
const PASSED_ON = 'exceptions'

/** Multiplier and first value of FNV-1a with 32 bits. */
const FNV_PRIME = 0x01000193
const FNV_BASIS = 0x811c9dc5

/** Jobs whose rows are inserted together, and their dead letters. */
export class Batch {
  /** The id under which the batch is named. */
  readonly id: string
  readonly rows: RowBatch
  readonly jobs: PooledJob[] = []
  readonly letters: BatchLetters
  readonly stats = new BatchStats()
  /** Requests whose exceptions leave when the batch is stored. */
  readonly exceptions: PassedOnRequest[] = []
  readonly #source: BatchSource
  readonly #options: BatchOptions
  readonly #log = new IngestLogTable()
  readonly #refused = new RefusedCollector()
  /** Requests whose outcome is logged when their exceptions are stored. */
  readonly #passedOn = new RefusedCollector()
  #digest = FNV_BASIS
  /** Set from the first call of `formation` until a job is added. */
  #formation: Formation | undefined
  /** The rows by shard, as of `#formation`. Undefined with one server, because only dividing the rows is work. */
  #shardBlocks: readonly TableBlock[] | undefined
  #decodedBytes = 0
  /** Bytes of what the log reports by name: fields that are left out, and rules. Hashes of dropped spans too. */
  #namesBytes = 0

  constructor(source: BatchSource, rows: RowBatch, options: BatchOptions = {}) {
    this.#source = source
    this.#options = options
    this.rows = rows
    this.id = options.id ?? randomUUID()
    this.letters = new BatchLetters(source, this.id)
  }

  /** Bytes of rows and of dead letters. Both are in memory until the batch is stored. */
  get bytes(): number {
    return this.rows.bytes + this.letterBytes
  }

  /** Bytes of the dead letters, and of names in the log. */
  get letterBytes(): number {
    return this.letters.bytes + this.#namesBytes
  }

  /**
   * Decodes the requests of a job. Afterwards the batch refers to no byte of its payload. A job that is not added leaves
   * nothing behind, so that it does not delay the other jobs of the batch. Throws a TransientError if memory is short.
   */
  async add(
    job: LockedJob,
    frames: readonly PayloadFrame[],
    payloadBytes: number,
    limits: JobLimits,
  ): Promise<PooledJob | NotAdded> {
    const notes: JobNotes = { entries: new Map(), refusals: [], replays: [], passedOn: [] }
    const [digest, namesBytes] = [this.#digest, this.#namesBytes]
    let notAdded: NotAdded | undefined = 'split'
    let refused = 0
    await this.rows.prepare?.(frames, this.#options.rules)
    const repeated = (await this.#source.pageClaims?.repeated(frames)) ?? NONE
    this.rows.markJob()
    try {
      const reason = await this.#appendAll(job, frames, { notes, repeated }, limits)
      refused = reason === undefined ? await this.letters.keep(job.jobId, notes) : 0
      notAdded = reason
    } finally {
      if (notAdded !== undefined) {
        this.rows.rewindJob()
        this.#digest = digest
        this.#namesBytes = namesBytes
      }
    }
    if (notAdded !== undefined) return notAdded
    const pooled = poolJob(job, frames.length)
    this.jobs.push(pooled)
    this.#formation = undefined
    this.#shardBlocks = undefined
    this.stats.addJob(frames, payloadBytes, refused)
    for (const { request } of notes.refusals) this.#refused.add(job.jobId, request.index, request.reason.label)
    this.#keepOutcomes(notes)
    return pooled
  }

  /** Returns the moves of the dead letters, and of the index rows of the letters that were replayed. */
  letterMoves(): Move[] {
    return this.letters.moves()
  }

  /** Returns the blocks to insert, in this order: the records, what derives from them, and last the log of the batch. */
  tables(): readonly TableBlock[] {
    const { shards = 1 } = this.#options
    if (shards > 1 && this.#shardBlocks !== undefined) return this.#shardBlocks
    const blocks = [...this.rows.tables(), ...blocksOf([this.#log.buffer])]
    if (shards <= 1) return blocks
    this.#shardBlocks = shardBlocks(blocks, shards, this.id)
    return this.#shardBlocks
  }

  /**
   * Returns what the batch is about to insert, for its record. The digest is of the number of rows of each request: 0.1 ms of
   * CPU for 100,000 requests. A CRC-32 of the bytes of 100,000 spans takes 5 ms, 2 to 3 % of the CPU of their batch. Two
   * versions that make as many rows of each request may store the rows of either under the same tokens.
   */
  formation(): Formation {
    if (this.#formation !== undefined) return this.#formation
    const tables = this.tables().filter(({ rows }) => rows > 0)
    this.#formation = {
      decoder: DECODER_VERSION,
      tables: Object.fromEntries(tables.map(({ table, rows }) => [table, rows])),
      digest: this.#digest >>> 0,
      refused: this.#refused.requests,
      passedOn: this.#passedOn.requests,
      rules: this.rows.rules?.(),
    }
    return this.#formation
  }

  /** Bytes of the records that are passed on. */
  get #passedOnBytes(): number {
    return this.rows.passedOn?.bytes.length ?? 0
  }

  #keepOutcomes({ entries, passedOn }: JobNotes): void {
    const { kind, queue } = this.#source
    const wasCounted = queue === 'exceptions'
    for (const entry of entries.values()) {
      this.stats.rows += wasCounted ? entry.derivedRows : entry.rows
      if (!wasCounted) this.stats.addRejected(entry)
      if (kind !== undefined) this.#log.append(entry)
    }
    for (const request of passedOn) {
      const { jobId, index, entry } = request
      if (entry !== undefined) {
        this.#passedOn.add(jobId, index, PASSED_ON)
        this.stats.addRejected(entry)
      }
      this.exceptions.push(request)
    }
  }

  /** Appends the requests of a job, or returns why it is not added. */
  async #appendAll(
    { jobId }: LockedJob,
    frames: readonly PayloadFrame[],
    { notes, repeated }: { readonly notes: JobNotes; readonly repeated: ReadonlySet<number> },
    limits: JobLimits,
  ): Promise<NotAdded | undefined> {
    const { kind, queue } = this.#source
    const { published } = this.#options
    const { refusals, replays } = notes
    const isPart = isDecidedBefore(this.#options)
    const maxDecodedBytes = this.#decodedBytes + limits.maxDecodedBytes
    const maxBytes = this.bytes + limits.maxColumnBytes
    const maxRows = this.rows.rows + limits.maxRows
    for (const [index, frame] of frames.entries()) {
      const isOver = this.#decodedBytes > maxDecodedBytes || this.rows.rows > maxRows || this.bytes > maxBytes
      if (index > 0 && isOver) return 'split'
      // The rows of the index are about replayed letters, and settle nothing themselves.
      const letter = queue === 'dead-letter-index' ? undefined : replayedFrom(frame)
      const records = queue === 'exceptions' ? readPassedOn(frame) : undefined
      const source = letter === undefined ? frame : { ...frame, only: positionsToReplay(letter) }
      let decoded = NOT_DECODED
      const append = async () => {
        const appended = repeated.has(index) ? REPEATED : await this.#append(source, limits.maxBodyBytes)
        decoded = appended.decoded ?? NOT_DECODED
        return appended.refusal
      }
      const refusal = isPart ? await outcomeInPart(this.#options, jobId, index, append) : await append()
      if (refusal === 'large') return frames.length > 1 ? 'split' : 'large'
      const request = { signal: kind ?? '', jobId, index, frame, replayedAtMs: letter?.replayedAtMs }
      const entry =
        queue === 'exceptions'
          ? countPassedOn(notes.entries, request, records, decoded.rows)
          : countOutcome(notes, request, decoded, published && labelAt(published.passedOn, jobId, index) !== undefined)
      if (letter !== undefined) replays.push({ frame, letter, refusal })
      if (refusal !== undefined) refusals.push({ entry, request: { jobId, index, frame, ...refusal } })
    }
    return undefined
  }

  /** Appends the rows of a request. Returns what was made of it, and why the request becomes a dead letter, if it does. */
  async #append(frame: SelectedFrame, maxBodyBytes: number): Promise<Appended> {
    let body = frame.body
    if (frame.contentEncoding !== 'identity') {
      const limitBytes = Math.min(maxBodyBytes, EXPORT_DECOMPRESSED_BYTES)
      const decompressed = await decompress(frame.body, frame.contentEncoding, limitBytes)
      if (!decompressed.ok) {
        const isOverLimit = decompressed.reason === 'too_large_decompressed'
        if (isOverLimit) this.#source.onDecoded?.(frame, limitBytes, 0)
        const isLarge = isOverLimit && limitBytes < EXPORT_DECOMPRESSED_BYTES
        return { refusal: isLarge ? 'large' : { reason: { label: decompressed.reason } } }
      }
      body = decompressed.body
    } else if (body.length > maxBodyBytes) return { refusal: 'large' }
    this.#decodedBytes += body.length
    const isMeasured = body.length >= MEASURED_BYTES && this.#source.onDecoded !== undefined
    const startedAt = isMeasured ? performance.now() : 0
    try {
      const derivedBefore = this.rows.derivedRows ?? 0
      const start = this.#passedOnBytes
      const result = this.rows.append(frame, body)
      if (!result.ok) return { refusal: { reason: { label: result.reason, detail: result.detail } } }
      const { rows, rejected, scrubbed, dropped } = result
      const derivedRows = (this.rows.derivedRows ?? 0) - derivedBefore
      this.#digest = Math.imul(this.#digest ^ (rows + 1), FNV_PRIME)
      const lost = lostRecords(rejected)
      for (const { details = [] } of Object.values(rejected)) this.#namesBytes += details.join().length
      for (const rule of scrubbed?.keys() ?? []) this.#namesBytes += rule.length
      for (const [rule, { spans }] of dropped ?? []) this.#namesBytes += 2 * rule.length + 4 * spans.length
      return {
        decoded: { rows, derivedRows, rejected, scrubbed, dropped, start, end: this.#passedOnBytes },
        refusal: lost && { reason: { label: 'records_rejected' }, rejected: lost, storedRecords: rows },
      }
    } catch (error) {
      if (isMemoryError(error)) throw new TransientError('not enough memory to decode a request', { cause: error })
      // A decoder bug hit by this payload. Dead-letter it for replay after the fix, and store the rest of the batch.
      return { refusal: { reason: { label: 'decoder_fault', detail: describeError(error) } } }
    } finally {
      if (isMeasured) this.#source.onDecoded?.(frame, body.length, performance.now() - startedAt)
      if (body !== frame.body) freeBuffer(body)
    }
  }
}

function poolJob(job: LockedJob, frames: number): PooledJob {
  const { promise, resolve, reject } = Promise.withResolvers<JobOutcome>()
  promise.catch(() => undefined) // no caller awaits the jobs of a resumed batch
  return { ...job, frames, outcome: promise, resolve, reject }
}
