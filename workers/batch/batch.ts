import { randomUUID } from 'node:crypto'
import { type IngestLogEntry, IngestLogTable } from '../../clickhouse/tables/ingest-log-table.ts'
import { EXPORT_DECOMPRESSED_BYTES } from '../../schemas/http/limits.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { commitOf, indexOf } from '../../shared/ids/receipt.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import {
  ONLY_COUNTED,
  type RejectedByReason,
  type Rejection,
  type RejectionLabel,
  reasonText,
} from '../../shared/runtime/reason.ts'
import { decompress, release } from '../decode/decompress.ts'
import { LetterMoves, type RefusedFrame } from '../queue/letter-moves.ts'
import type { LetterQuota } from '../queue/letter-quota.ts'
import { addShare, type HeldJob } from '../queue/payloads/payload-store.ts'
import type { JobLimits } from './job-limits.ts'
import { blocksOf, type RowBatch, type TableBlock } from './row-batch.ts'

/** The queue of the jobs of a batch. */
export interface BatchSource {
  readonly queue: QueueName
  /** The name of these requests in `ingest_log`. Undefined if the log has no rows for them. */
  readonly kind: string | undefined
  /** Bounds the dead letters of a surface. Without it, all are kept. */
  readonly letterQuota?: LetterQuota | undefined
  /** Called with the decoded size of a large request and the time that decoding it took. */
  readonly onDecoded?: (frame: PayloadFrame, decodedBytes: number, decodeMs: number) => void
}

/** Smaller requests are not measured: their work follows from their number. */
const MEASURED_BYTES = 16 * 1024

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
  /** Requests of which nothing is stored. */
  refused: number
  readonly rejectedRows: Map<RejectionLabel, number>
}

/** Why a request becomes a dead letter, and what of it is stored. */
type Refusal = Pick<RefusedFrame, 'reason' | 'rejected' | 'storedRecords' | 'storedTables'>

/** A request of a job that becomes a dead letter, and the log entry in which it is counted. */
interface LoggedRefusal {
  readonly entry: IngestLogEntry
  readonly request: RefusedFrame
}

/**
 * Why a job was not added. `split`: its requests are too many or too large together. `large`: it has one request, with a
 * body that must be decoded while no other large body is.
 */
export type NotAdded = 'split' | 'large'

/** Options of a batch. */
export interface BatchOptions {
  /** The id under which the batch is named; a new one by default. Object keys of dead letters derive from it. */
  readonly id?: string
  /** Refuses every request for this reason, without decoding it. */
  readonly refuseAll?: Refusal | undefined
}

/** Jobs whose rows are inserted together, and their dead letters. */
export class Batch {
  /** The id under which the batch is named. */
  readonly id: string
  readonly rows: RowBatch
  readonly jobs: PooledJob[] = []
  readonly letters: LetterMoves
  readonly stats: BatchStats = {
    frames: 0,
    payloadBytes: 0,
    rows: 0,
    shares: new Map(),
    refused: 0,
    rejectedRows: new Map(),
  }
  readonly #source: BatchSource
  readonly #refuseAll: Refusal | undefined
  readonly #log = new IngestLogTable()
  #decodedBytes = 0
  #noteBytes = 0

  constructor(source: BatchSource, rows: RowBatch, options: BatchOptions = {}) {
    this.#source = source
    this.#refuseAll = options.refuseAll
    this.rows = rows
    this.id = options.id ?? randomUUID()
    this.letters = new LetterMoves(source.queue, this.id)
  }

  /** Bytes of rows and of dead letters. Both are in memory until the batch is stored. */
  get bytes(): number {
    return this.rows.bytes + this.letterBytes
  }

  /** Bytes of the dead letters, and of what their receipts report. */
  get letterBytes(): number {
    return this.letters.bytes + this.#noteBytes
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
    const refusals: LoggedRefusal[] = []
    const entries = new Map<string, IngestLogEntry>()
    let notAdded: NotAdded | undefined = 'split'
    this.rows.markJob()
    try {
      const reason = await this.#appendAll(job, frames, { entries, refusals }, limits)
      if (reason === undefined) await this.#keepLetters(job.jobId, refusals)
      notAdded = reason
    } finally {
      if (notAdded !== undefined) this.rows.rewindJob()
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
    { entries, refusals }: { entries: Map<string, IngestLogEntry>; refusals: LoggedRefusal[] },
    limits: JobLimits,
  ): Promise<NotAdded | undefined> {
    const { kind } = this.#source
    const maxDecodedBytes = this.#decodedBytes + limits.maxDecodedBytes
    const maxBytes = this.bytes + limits.maxColumnBytes
    const maxRows = this.rows.rows + limits.maxRows
    for (const [index, frame] of frames.entries()) {
      const isOver = this.#decodedBytes > maxDecodedBytes || this.rows.rows > maxRows || this.bytes > maxBytes
      if (index > 0 && isOver) return 'split'
      const entry = entryOf(entries, kind ?? '', jobId, frame)
      const refusal = await this.#append(frame, entry, limits.maxBodyBytes)
      if (refusal === undefined) continue
      if (refusal === 'large') return frames.length > 1 ? 'split' : 'large'
      refusals.push({ entry, request: { jobId, index, frame, ...refusal } })
    }
    return undefined
  }

  /** Appends the rows of a request and counts them. Returns why the request becomes a dead letter, if it does. */
  async #append(
    frame: PayloadFrame,
    entry: IngestLogEntry,
    maxBodyBytes: number,
  ): Promise<Refusal | 'large' | undefined> {
    if (this.#refuseAll !== undefined) return this.#refuseAll
    let body = frame.body
    if (frame.contentEncoding !== 'identity') {
      const limitBytes = Math.min(maxBodyBytes, EXPORT_DECOMPRESSED_BYTES)
      const decompressed = await decompress(frame.body, frame.contentEncoding, limitBytes)
      if (!decompressed.ok) {
        const isOverLimit = decompressed.reason === 'too_large_decompressed'
        if (isOverLimit) this.#source.onDecoded?.(frame, limitBytes, 0)
        const isLarge = isOverLimit && limitBytes < EXPORT_DECOMPRESSED_BYTES
        return isLarge ? 'large' : { reason: { label: decompressed.reason } }
      }
      body = decompressed.body
    } else if (body.length > maxBodyBytes) return 'large'
    this.#decodedBytes += body.length
    const isMeasured = body.length >= MEASURED_BYTES && this.#source.onDecoded !== undefined
    const startedAt = isMeasured ? performance.now() : 0
    try {
      const result = this.rows.append(frame, body)
      if (!result.ok) return { reason: { label: result.reason, detail: result.detail } }
      entry.rows += result.rows
      const rejected = rejectionsOf(result.rejected)
      if (rejected.length === 0) return undefined
      for (const [label, { count }] of rejected) increment(entry.rejected, label, count)
      const lost = rejected.filter(([label]) => !ONLY_COUNTED.has(label))
      if (lost.length === 0) return undefined
      const reason = { label: 'records_rejected' } as const
      return { reason, rejected: Object.fromEntries(lost), storedRecords: result.rows }
    } catch (error) {
      // A decoder bug hit by this payload. Dead-letter it for replay after the fix, and store the rest of the batch.
      return { reason: { label: 'decoder_fault', detail: describeError(error) } }
    } finally {
      if (isMeasured) this.#source.onDecoded?.(frame, body.length, performance.now() - startedAt)
      if (body !== frame.body) release(body)
    }
  }

  /** Keeps the refused requests of a job as dead letters, as far as their surfaces may have more of them on that day. */
  async #keepLetters(jobId: string, refusals: readonly LoggedRefusal[]): Promise<void> {
    if (refusals.length === 0) return
    const { queue, letterQuota } = this.#source
    const requests = refusals.map(({ request }) => request)
    const isKept = await letterQuota?.admit(queue, jobId, requests)
    for (const [i, { entry, request }] of refusals.entries()) {
      const { frame } = request
      // A copy of the body, because the memory of the payload is used again.
      const keep = () => this.letters.add({ ...request, frame: { ...frame, body: Buffer.from(frame.body) } })
      const objectKey = (isKept?.[i] ?? true) ? keep() : ''
      if (isRefused(request)) this.stats.refused++
      this.#noteBytes += note(entry, request, objectKey)
    }
  }
}

/** Returns whether nothing of the request is stored. */
function isRefused({ rejected, storedRecords = 0 }: RefusedFrame): boolean {
  return rejected === undefined || storedRecords === 0
}

function rejectionsOf(rejected: RejectedByReason): readonly [RejectionLabel, Rejection][] {
  return Object.entries(rejected) as [RejectionLabel, Rejection][]
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
    const counts = { payloads: 0, bytes: 0, rows: 0, rejected: new Map() }
    const letters = { deadLettered: new Map(), discarded: new Map(), discardedIndexes: [], refused: [], rejections: [] }
    entry = { workspaceId, surfaceId, receivedAtMs, jobId, signal, ...counts, ...letters, commit, indexes: [] }
    entries.set(key, entry)
  }
  if (receipt !== undefined) entry.indexes.push(indexOf(receipt))
  entry.receivedAtMs = Math.min(entry.receivedAtMs, receivedAtMs)
  entry.payloads++
  entry.bytes += frame.body.length
  return entry
}

/**
 * Counts a dead letter and notes, for the receipt of its request, which object will contain it. The key is empty if the
 * letter is not kept. Returns the bytes of the note.
 */
function note(entry: IngestLogEntry, request: RefusedFrame, objectKey: string): number {
  const { frame, reason, rejected = {} } = request
  increment(objectKey === '' ? entry.discarded : entry.deadLettered, reason.label, 1)
  if (frame.receipt === undefined) return 0
  const index = indexOf(frame.receipt)
  if (objectKey === '') entry.discardedIndexes.push(index)
  let bytes = 0
  for (const [label, { count }] of rejectionsOf(rejected)) {
    entry.rejections.push({ index, reason: label, records: count, objectKey })
    bytes += label.length + objectKey.length
  }
  if (isRefused(request)) {
    const text = reasonText(reason)
    entry.refused.push({ index, reason: text, objectKey })
    bytes += text.length + objectKey.length
  }
  return bytes
}

function increment<K extends string>(counts: Map<K, number>, key: K, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count)
}

function poolJob(job: HeldJob, frames: number): PooledJob {
  const { promise, resolve, reject } = Promise.withResolvers<JobOutcome>()
  promise.catch(() => undefined) // no caller awaits the jobs of a resumed batch
  return { ...job, frames, outcome: promise, resolve, reject }
}
