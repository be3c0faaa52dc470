import type { DeadLetter, QueueName } from '../schemas/jobs.ts'
import { encodePayload, type PayloadFrame } from '../shared/payload-frame.ts'
import { decompress } from './decompress.ts'
import type { HeldJob, NewPayload } from './payload-store.ts'
import type { RowBatch } from './row-batch.ts'

/** A request decompresses to 64 MiB at most (CONTRACT 4.4). */
const DECOMPRESSED_LIMIT_BYTES = 64 * 1024 * 1024

/** A request that cannot be stored, and why. */
export interface RefusedFrame {
  readonly jobId: string
  readonly index: number
  readonly frame: PayloadFrame
  readonly reason: string
}

/** A job in a batch. `again`: the batch was given up before it was named, and the job is to be looked at anew. */
export interface PooledJob extends HeldJob {
  readonly frames: readonly PayloadFrame[]
  readonly payloadBytes: number
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
  /** Held for this batch: column buffers, and the bodies that go to the dead letters. */
  readonly bytes: number
  add(job: HeldJob, frames: readonly PayloadFrame[], payloadBytes: number): Promise<PooledJob>
}

export function createBatch(rows: RowBatch): Batch {
  const jobs: PooledJob[] = []
  const refused: RefusedFrame[] = []
  const stats: BatchStats = { frames: 0, payloadBytes: 0, rows: 0, rejectedRows: new Map() }
  let refusedBytes = 0

  async function append(frame: PayloadFrame): Promise<string | undefined> {
    let body = frame.body
    if (frame.contentEncoding !== 'identity') {
      const decompressed = await decompress(frame.body, frame.contentEncoding, DECOMPRESSED_LIMIT_BYTES)
      if (!decompressed.ok) return decompressed.reason
      body = decompressed.body
    }
    const result = rows.append(frame, body)
    if (!result.ok) return result.reason
    stats.rows += result.rows
    for (const [reason, count = 0] of Object.entries(result.rejected)) {
      stats.rejectedRows.set(reason, (stats.rejectedRows.get(reason) ?? 0) + count)
    }
    return undefined
  }

  return {
    rows,
    jobs,
    refused,
    stats,
    get bytes() {
      return rows.bytes + refusedBytes
    },
    async add(job, frames, payloadBytes) {
      const pooled = poolJob(job, frames, payloadBytes)
      jobs.push(pooled)
      stats.frames += frames.length
      stats.payloadBytes += payloadBytes
      for (const [index, frame] of frames.entries()) {
        const reason = await append(frame)
        if (reason === undefined) continue
        refused.push({ jobId: job.jobId, index, frame, reason })
        refusedBytes += frame.body.length
      }
      return pooled
    },
  }
}

function poolJob(job: HeldJob, frames: readonly PayloadFrame[], payloadBytes: number): PooledJob {
  const { promise, resolve, reject } = Promise.withResolvers<'stored' | 'again'>()
  promise.catch(() => undefined) // a resumed batch has jobs that nobody awaits
  return { ...job, frames, payloadBytes, outcome: promise, resolve, reject }
}

/** What was refused, as the payload of a job for the dead-letter queue. */
export function deadLetterPayload(queue: QueueName, jobId: string, refused: readonly RefusedFrame[]): NewPayload {
  const frames = refused.map(({ frame, index, reason, jobId: origin }): PayloadFrame => {
    const letter: DeadLetter = { queue, jobId: origin, index, reason, attributes: frame.attributes }
    return { ...frame, attributes: JSON.stringify(letter) }
  })
  return { jobId, payload: encodePayload(frames), frames: frames.length }
}
