import { randomUUID } from 'node:crypto'
import { Budget } from '../../shared/concurrency/budget.ts'
import { decodePayload } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { HeldJob, NamedBatch, PayloadStore } from '../queue/payload-store.ts'
import { formBatch } from './form-batch.ts'
import { type Batch, type BatchSource, createBatch, type PooledJob } from './open-batch.ts'
import type { RowBatch } from './row-batch.ts'
import type { BatchStorer } from './store-batch.ts'

export interface BatchPoolOptions {
  /** A batch is sealed at the first of these, as soon as an insert slot is free. */
  readonly maxRows: number
  readonly maxBytes: number
  readonly maxAgeMs: number
  readonly maxConcurrentInserts: number
  /** Payload bytes fetched from Redis and not yet decoded. */
  readonly maxFetchedBytes: number
  /** A job whose requests decompress to more is split: small bodies of large rows may have shared its commit. */
  readonly maxJobDecodedBytes: number
}

interface OpenBatch {
  readonly batch: Batch
  readonly timer: NodeJS.Timeout
  /** Asked for once, by age or by size, whichever comes first. */
  slot?: Promise<() => void>
}

export interface BatchPool {
  /** Settles when the job's payload is stored or dead-lettered, by this worker or another. Throws a TransientError else. */
  process(job: HeldJob, payloadBytes: number): Promise<void>
  /** Stores what is open without waiting for its age. */
  flush(): void
}

/**
 * Coalesces jobs into named batches (ARCHITECTURE, "The way of a payload"). One batch is open; sealed ones wait for an
 * insert slot, and while all slots are taken the open one grows to its bounds and then holds up decoding: so a store
 * that is away holds up the pool with bounded memory.
 */
export function createBatchPool(
  deps: BatchSource & { store: PayloadStore; storer: BatchStorer; createRows: () => RowBatch; logger: Logger },
  options: BatchPoolOptions,
): BatchPool {
  const { store, storer } = deps
  const fetched = new Budget(options.maxFetchedBytes)
  const slots = new Budget(options.maxConcurrentInserts)
  const idleRows: RowBatch[] = Array.from({ length: options.maxConcurrentInserts + 1 }, deps.createRows)
  const rowsWanted: ((rows: RowBatch) => void)[] = []
  const resuming = new Map<string, Promise<void>>()
  let open: OpenBatch | undefined
  let decoding: Promise<unknown> = Promise.resolve()

  function takeRows(): Promise<RowBatch> {
    const rows = idleRows.pop()
    return rows ? Promise.resolve(rows) : new Promise(resolve => rowsWanted.push(resolve))
  }

  function giveBack(rows: RowBatch): void {
    rows.reset()
    const wanted = rowsWanted.shift()
    if (wanted) wanted(rows)
    else idleRows.push(rows)
  }

  /** One job at a time: its rows stand together, and a batch is never sealed in the middle of a job. */
  function decodeInTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = decoding.then(work)
    decoding = turn.catch(() => undefined)
    return turn
  }

  /** Undefined: the job was split, or is another worker's. */
  async function join(job: HeldJob, payload: Buffer): Promise<PooledJob | undefined> {
    const frames = decodePayload(payload)
    if (open === undefined) {
      const batch = createBatch(deps, await takeRows())
      open = { batch, timer: setTimeout(flush, options.maxAgeMs) }
    }
    const { batch } = open
    const pooled = await batch.add(job, frames, payload.length, options.maxJobDecodedBytes).catch(error => {
      giveUp()
      throw error
    })
    if (pooled === undefined) {
      giveUp()
      await splitJob(job)
    } else if (batch.rows.rows >= options.maxRows || batch.bytes >= options.maxBytes) await seal()
    return pooled
  }

  /** The open batch holds some rows of a job that cannot be in it: whoever shared it with that job starts over. */
  function giveUp(): void {
    if (open === undefined) return
    const { batch, timer, slot } = open
    open = undefined
    clearTimeout(timer)
    void slot?.then(release => release())
    for (const job of batch.jobs) job.resolve('again')
    giveBack(batch.rows)
  }

  async function splitJob(job: HeldJob): Promise<void> {
    const named: NamedBatch = { batchId: randomUUID(), jobIds: [job.jobId], storedTables: [] }
    const conflicts = await store.nameBatch(named.batchId, [job])
    if (conflicts.get(job.jobId) === 'lost') throw new TransientError('the lock of the job was lost')
    if (conflicts.size === 0) await storer.split(named)
  }

  function slotOf(batch: OpenBatch): Promise<() => void> {
    batch.slot ??= slots.acquire(1)
    return batch.slot
  }

  /** Runs in the turn of the decoder. Waits for an insert slot: meanwhile nothing is decoded. */
  async function seal(): Promise<void> {
    const sealed = open
    if (sealed === undefined) return
    clearTimeout(sealed.timer)
    const release = await slotOf(sealed)
    open = undefined
    void storeSealed(sealed.batch).finally(() => {
      release()
      giveBack(sealed.batch.rows)
    })
  }

  /** Waits for the slot before it takes the decoder's turn: until then the batch grows. */
  function flush(): void {
    const flushed = open
    if (flushed === undefined) return
    void slotOf(flushed).then(() => decodeInTurn(async () => (flushed === open ? seal() : undefined)))
  }

  async function storeSealed(batch: Batch): Promise<void> {
    try {
      const batchId = randomUUID()
      const conflicts = await store.nameBatch(batchId, batch.jobs)
      if (conflicts.size > 0) {
        // Another worker took some of these jobs meanwhile. All start over: what is theirs then shows as named or stored.
        deps.logger.info({ batchId, conflicts: conflicts.size, jobs: batch.jobs.length }, 'batch could not be named')
        for (const job of batch.jobs) {
          if (conflicts.get(job.jobId) === 'lost') job.reject(new TransientError('the lock of the job was lost'))
          else job.resolve('again')
        }
        return
      }
      const named: NamedBatch = { batchId, jobIds: batch.jobs.map(job => job.jobId), storedTables: [] }
      const isStored = await storer.store(named, batch, batch.jobs)
      for (const job of batch.jobs) job.resolve(isStored ? 'stored' : 'again')
    } catch (error) {
      for (const job of batch.jobs) job.reject(error)
    }
  }

  /** Forms again the batch that names this job, and stores it: if its inserts had landed, repeating them adds nothing. */
  async function resume(batchId: string, holder: HeldJob): Promise<void> {
    const record = await store.batch(batchId)
    if (record === undefined) return
    const rows = await takeRows()
    const release = await slots.acquire(1)
    try {
      // Of several jobs each was within the limit when they were named together.
      const maxDecodedBytes = record.jobIds.length === 1 ? options.maxJobDecodedBytes : Number.POSITIVE_INFINITY
      const formed = await formBatch(deps, record.jobIds, rows, maxDecodedBytes)
      if (formed.ok) await storer.store({ batchId, ...record }, formed.batch, [holder])
      else if (formed.reason === 'too_large') await storer.split({ batchId, ...record })
    } finally {
      release()
      giveBack(rows)
    }
  }

  function resumeOnce(batchId: string, holder: HeldJob): Promise<void> {
    let running = resuming.get(batchId)
    if (running === undefined) {
      running = resume(batchId, holder).finally(() => resuming.delete(batchId))
      resuming.set(batchId, running)
    }
    return running
  }

  return {
    async process(job, payloadBytes) {
      let resumed: string | undefined
      for (;;) {
        const release = await fetched.acquire(payloadBytes)
        let pooled: PooledJob | undefined
        try {
          const { batchId, payload } = await store.look(job.jobId)
          if (batchId !== null) {
            release()
            if (batchId === resumed) throw new TransientError(`batch ${batchId} names a job and cannot be formed again`)
            await resumeOnce(batchId, job)
            resumed = batchId
            continue
          }
          if (payload === null) return
          pooled = await decodeInTurn(() => join(job, payload)).finally(() => store.giveBack(payload))
        } finally {
          release()
        }
        if (pooled && (await pooled.outcome) === 'stored') return
      }
    },
    flush,
  }
}
