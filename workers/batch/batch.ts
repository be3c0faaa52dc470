import { type IngestLogEntry, IngestLogTable } from '../../clickhouse/tables/ingest-log-table.ts'
import { EXPORT_DECOMPRESSED_BYTES } from '../../schemas/http/limits.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { commitOf, indexOf } from '../../shared/ids/receipt.ts'
import { deadLetterKey } from '../../shared/object-store/object-keys.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { type Reason, type RejectionLabel, reasonText } from '../../shared/runtime/reason.ts'
import { decompress } from '../decode/decompress.ts'
import type { RefusedFrame } from '../queue/moves.ts'
import { addShare, type HeldJob } from '../queue/payload-store.ts'
import type { JobLimits } from './job-limits.ts'
import { blocksOf, type RowBatch, type TableBlock } from './row-batch.ts'

/** The queue of the jobs of a batch. */
export interface BatchSource {
  readonly queue: QueueName
  /** The name of these requests in `ingest_log`. Undefined if the log has no rows for them. */
  readonly kind: string | undefined
}

/** The outcome of a job in a batch. `again`: the batch was abandoned before it was named, so the job must be looked at again. */
export type JobOutcome = 'stored' | 'again'

/** A job in a batch. */
export interface PooledJob extends HeldJob {
  readonly frames: number
  readonly outcome: Promise<JobOutcome>
  resolve(outcome: JobOutcome): void
  reject(error: unknown): void
}

/** Counters of a batch. */
export interface BatchStats {
  frames: number
  payloadBytes: number
  rows: number
  /** Cost of the requests by surface. */
  readonly shares: Map<string, number>
  readonly rejectedRows: Map<RejectionLabel, number>
}

/**
 * Why a job was not added. `split`: its requests are too many or too large together. `large`: it has one request, with a
 * body that must be decoded while no other large body is.
 */
export type NotAdded = 'split' | 'large'

/** Options of a batch. */
export interface BatchOptions {
  /** Refuses every request for this reason, without decoding it. */
  readonly refuseAll?: Reason | undefined
}

/** Jobs whose rows are inserted together, and the requests among them that were refused. */
export class Batch {
  readonly rows: RowBatch
  readonly jobs: PooledJob[] = []
  readonly refused: RefusedFrame[] = []
  readonly stats: BatchStats = { frames: 0, payloadBytes: 0, rows: 0, shares: new Map(), rejectedRows: new Map() }
  readonly #source: BatchSource
  readonly #refuseAll: Reason | undefined
  readonly #log = new IngestLogTable()
  #decodedBytes = 0
  #refusedBytes = 0

  constructor(source: BatchSource, rows: RowBatch, options: BatchOptions = {}) {
    this.#source = source
    this.#refuseAll = options.refuseAll
    this.rows = rows
  }

  /** Bytes of rows and of refused requests. Both are in memory until the batch is stored. */
  get bytes(): number {
    return this.rows.bytes + this.#refusedBytes
  }

  /** Bytes of the refused requests. */
  get refusedBytes(): number {
    return this.#refusedBytes
  }

  /**
   * Decodes the requests of a job. Afterwards the batch refers to no byte of its payload. A job that is not added leaves
   * nothing behind, so that it does not delay the other jobs of the batch.
   */
  async add(
    job: HeldJob,
    frames: readonly PayloadFrame[],
    payloadBytes: number,
    limits: JobLimits,
  ): Promise<PooledJob | NotAdded> {
    const refusedBefore = this.refused.length
    const refusedBytesBefore = this.#refusedBytes
    const entries = new Map<string, IngestLogEntry>()
    let notAdded: NotAdded | undefined = 'split'
    this.rows.markJob()
    try {
      notAdded = await this.#appendAll(job, frames, entries, limits)
    } finally {
      if (notAdded !== undefined) {
        this.rows.rewindJob()
        this.refused.length = refusedBefore
        this.#refusedBytes = refusedBytesBefore
      }
    }
    if (notAdded !== undefined) return notAdded
    const pooled = poolJob(job, frames.length)
    this.jobs.push(pooled)
    this.stats.frames += frames.length
    this.stats.payloadBytes += payloadBytes
    for (const frame of frames) addShare(this.stats.shares, frame)
    for (const entry of entries.values()) {
      this.stats.rows += entry.rows
      for (const [label, count] of entry.rejected) increment(this.stats.rejectedRows, label as RejectionLabel, count)
      if (this.#source.kind !== undefined) this.#log.append(entry)
    }
    return pooled
  }

  /** Returns the blocks to insert, in this order: the records, what derives from them, and last the log of the batch. */
  tables(): readonly TableBlock[] {
    return [...this.rows.tables(), ...blocksOf([this.#log.buffer])]
  }

  /** Appends the requests of a job, or returns why it is not added. */
  async #appendAll(
    { jobId }: HeldJob,
    frames: readonly PayloadFrame[],
    entries: Map<string, IngestLogEntry>,
    limits: JobLimits,
  ): Promise<NotAdded | undefined> {
    const { queue, kind } = this.#source
    const maxDecodedBytes = this.#decodedBytes + limits.maxDecodedBytes
    const maxBytes = this.bytes + limits.maxColumnBytes
    const maxRows = this.rows.rows + limits.maxRows
    for (const [index, frame] of frames.entries()) {
      const isOver = this.#decodedBytes > maxDecodedBytes || this.rows.rows > maxRows || this.bytes > maxBytes
      if (index > 0 && isOver) return 'split'
      const entry = entryOf(entries, kind ?? '', jobId, frame)
      const reason = await this.#append(frame, entry, limits.maxBodyBytes)
      if (reason === undefined) continue
      if (reason === 'large') return frames.length > 1 ? 'split' : 'large'
      // A copy of the body, because the memory of the payload is used again.
      const request = { jobId, index, frame: { ...frame, body: Buffer.from(frame.body) }, reason }
      this.refused.push(request)
      this.#refusedBytes += frame.body.length + noteRefusal(entry, queue, request)
    }
    return undefined
  }

  /** Appends the rows of a request and counts them, or returns the reason why none of them can be stored. */
  async #append(
    frame: PayloadFrame,
    entry: IngestLogEntry,
    maxBodyBytes: number,
  ): Promise<Reason | 'large' | undefined> {
    if (this.#refuseAll !== undefined) return this.#refuseAll
    let body = frame.body
    if (frame.contentEncoding !== 'identity') {
      const limitBytes = Math.min(maxBodyBytes, EXPORT_DECOMPRESSED_BYTES)
      const decompressed = await decompress(frame.body, frame.contentEncoding, limitBytes)
      if (!decompressed.ok) {
        const isLarge = decompressed.reason === 'too_large_decompressed' && limitBytes < EXPORT_DECOMPRESSED_BYTES
        return isLarge ? 'large' : { label: decompressed.reason }
      }
      body = decompressed.body
    } else if (body.length > maxBodyBytes) return 'large'
    this.#decodedBytes += body.length
    try {
      const result = this.rows.append(frame, body)
      if (!result.ok) return { label: result.reason, detail: result.detail }
      entry.rows += result.rows
      for (const [label, count = 0] of Object.entries(result.rejected)) increment(entry.rejected, label, count)
      return undefined
    } catch (error) {
      // A decoder bug hit by this payload. Dead-letter it for replay after the fix, and store the rest of the batch.
      return { label: 'decoder_fault', detail: describeError(error) }
    }
  }
}

/** Returns the log entry of a job and surface, with this frame counted. */
function entryOf(
  entries: Map<string, IngestLogEntry>,
  signal: string,
  jobId: string,
  frame: PayloadFrame,
): IngestLogEntry {
  const { workspaceId, surfaceId, receivedAtMs, receipt } = frame
  const commit = receipt === undefined ? '' : commitOf(receipt)
  const key = `${workspaceId} ${surfaceId} ${commit}`
  let entry = entries.get(key)
  if (entry === undefined) {
    const counts = { payloads: 0, bytes: 0, rows: 0, rejected: new Map(), deadLettered: new Map() }
    entry = { workspaceId, surfaceId, receivedAtMs, jobId, signal, ...counts, commit, indexes: [], refused: [] }
    entries.set(key, entry)
  }
  if (receipt !== undefined) entry.indexes.push(indexOf(receipt))
  entry.receivedAtMs = Math.min(entry.receivedAtMs, receivedAtMs)
  entry.payloads++
  entry.bytes += frame.body.length
  return entry
}

/**
 * Counts a request that becomes a dead letter and notes, for its receipt, where it will be stored. Returns the bytes of
 * the note.
 */
function noteRefusal(entry: IngestLogEntry, queue: QueueName, { frame, jobId, index, reason }: RefusedFrame): number {
  increment(entry.deadLettered, reason.label, 1)
  if (frame.receipt === undefined) return 0
  const objectKey = deadLetterKey({ ...frame, queue, jobId, index })
  const note = { index: indexOf(frame.receipt), reason: reasonText(reason), objectKey }
  entry.refused.push(note)
  return note.reason.length + objectKey.length
}

function increment<K extends string>(counts: Map<K, number>, key: K, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

function poolJob(job: HeldJob, frames: number): PooledJob {
  const { promise, resolve, reject } = Promise.withResolvers<JobOutcome>()
  promise.catch(() => undefined) // no caller awaits the jobs of a resumed batch
  return { ...job, frames, outcome: promise, resolve, reject }
}
