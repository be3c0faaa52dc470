import { type IngestLogEntry, IngestLogTable } from '../../clickhouse/tables/ingest-log-table.ts'
import type { DeadLetter } from '../../schemas/queues/jobs.ts'
import type { QueueName } from '../../schemas/queues/names.ts'
import { commitOf, indexOf } from '../../shared/ids/receipt.ts'
import { deadLetterKey } from '../../shared/object-store/object-keys.ts'
import { encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { decompress } from '../decode/decompress.ts'
import type { HeldJob, NewPayload } from '../queue/payload-store.ts'
import { blocksOf, type RowBatch, type TableBlock } from './row-batch.ts'

/** Characters of a reason that a receipt tells. */
const REASON_LIMIT = 1_000
/** A request decompresses to 64 MiB at most (CONTRACT 4.4). */
const DECOMPRESSED_LIMIT_BYTES = 64 * 1024 * 1024

/** Where a batch's jobs are from, and what `ingest_log` calls their requests; undefined: it says nothing of them. */
export interface BatchSource {
  readonly queue: QueueName
  readonly signal: string | undefined
}

/** A request that cannot be stored, and why. */
export interface RefusedFrame {
  readonly jobId: string
  readonly index: number
  /** With its own copy of the body: payloads are not held. */
  readonly frame: PayloadFrame
  readonly reason: string
}

/** A job in a batch. `again`: the batch was given up before it was named, and the job is to be looked at anew. */
export interface PooledJob extends HeldJob {
  readonly frames: number
  readonly outcome: Promise<'stored' | 'again'>
  resolve(outcome: 'stored' | 'again'): void
  reject(error: unknown): void
}

export interface BatchStats {
  frames: number
  payloadBytes: number
  rows: number
  readonly rejectedRows: Map<string, number>
}

/** Jobs whose rows are inserted together, with what of them was refused. */
export interface Batch {
  readonly rows: RowBatch
  readonly jobs: readonly PooledJob[]
  readonly refused: readonly RefusedFrame[]
  readonly stats: BatchStats
  /** Of rows, and of requests that were refused: both are held until they are stored. */
  readonly bytes: number
  /**
   * Decodes the requests of a job; nothing of its payload is held afterwards. Undefined when a job of several requests
   * decodes to more than `maxDecodedBytes`: some of its rows are in the batch then, which must be given up.
   */
  add(
    job: HeldJob,
    frames: readonly PayloadFrame[],
    payloadBytes: number,
    maxDecodedBytes: number,
  ): Promise<PooledJob | undefined>
  /** What to insert, in this order: the records, what derives from them, and last the log of the batch itself. */
  tables(): readonly TableBlock[]
}

export function createBatch({ queue, signal }: BatchSource, rows: RowBatch): Batch {
  const jobs: PooledJob[] = []
  const refused: RefusedFrame[] = []
  const stats: BatchStats = { frames: 0, payloadBytes: 0, rows: 0, rejectedRows: new Map() }
  const log = new IngestLogTable()
  let decodedBytes = 0
  let refusedBytes = 0

  /** Puts a request's rows into the batch and counts them, or says why none of them can be. */
  async function append(frame: PayloadFrame, entry: IngestLogEntry): Promise<string | undefined> {
    let body = frame.body
    if (frame.contentEncoding !== 'identity') {
      const decompressed = await decompress(frame.body, frame.contentEncoding, DECOMPRESSED_LIMIT_BYTES)
      if (!decompressed.ok) return decompressed.reason
      body = decompressed.body
    }
    decodedBytes += body.length
    try {
      const result = rows.append(frame, body)
      if (!result.ok) return result.reason
      stats.rows += result.rows
      entry.rows += result.rows
      for (const [reason, count = 0] of Object.entries(result.rejected)) {
        add(stats.rejectedRows, reason, count)
        add(entry.rejected, reason, count)
      }
      return undefined
    } catch (error) {
      // A fault of ours, which this payload alone meets: its neighbours are stored, and it is kept for when that is mended.
      return `decoder_fault: ${describeError(error)}`
    }
  }

  return {
    rows,
    jobs,
    refused,
    stats,
    get bytes() {
      return rows.bytes + refusedBytes
    },
    async add(job, frames, payloadBytes, maxDecodedBytes) {
      const decodedBefore = decodedBytes
      const pooled = poolJob(job, frames.length)
      jobs.push(pooled)
      stats.frames += frames.length
      stats.payloadBytes += payloadBytes
      const entries = new Map<string, IngestLogEntry>()
      for (const [index, frame] of frames.entries()) {
        if (index > 0 && decodedBytes - decodedBefore > maxDecodedBytes) return undefined
        const entry = entryOf(entries, signal ?? '', job.jobId, frame)
        const reason = await append(frame, entry)
        if (reason === undefined) continue
        const request = { queue, jobId: job.jobId, index, frame, reason }
        refused.push({ ...request, frame: { ...frame, body: Buffer.from(frame.body) } })
        refusedBytes += frame.body.length + noteRefusal(entry, request)
      }
      if (signal !== undefined) for (const entry of entries.values()) log.append(entry)
      return pooled
    },
    tables: () => [...rows.tables(), ...blocksOf([log.buffer])],
  }
}

/** The log entry of a job and surface, with this frame counted. */
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

/** Counts a request that is dead-lettered, and says of its receipt where it will be. Answers the bytes of that. */
function noteRefusal(entry: IngestLogEntry, request: RefusedFrame & { readonly queue: QueueName }): number {
  const { frame, reason } = request
  add(entry.deadLettered, reason.split(':', 1)[0] as string, 1)
  if (frame.receipt === undefined) return 0
  const objectKey = deadLetterKey({ ...frame, ...request })
  const told = { index: indexOf(frame.receipt), reason: reason.slice(0, REASON_LIMIT), objectKey }
  entry.refused.push(told)
  return told.reason.length + objectKey.length
}

function add(counts: Map<string, number>, reason: string, count: number): void {
  counts.set(reason, (counts.get(reason) ?? 0) + count)
}

function poolJob(job: HeldJob, frames: number): PooledJob {
  const { promise, resolve, reject } = Promise.withResolvers<'stored' | 'again'>()
  promise.catch(() => undefined) // a resumed batch has jobs that nobody awaits
  return { ...job, frames, outcome: promise, resolve, reject }
}

/** What was refused, as the payload of a job for the dead-letter queue. */
export function deadLetterPayload(queue: QueueName, jobId: string, refused: readonly RefusedFrame[]): NewPayload {
  const frames = refused.map(({ frame, index, reason, jobId: origin }): PayloadFrame => {
    const letter: DeadLetter = { queue, jobId: origin, index, reason, attributes: frame.attributes }
    return { ...frame, attributes: JSON.stringify(letter) }
  })
  return { jobId, payload: encodePayload(frames), frames: frames.length }
}
