import { randomUUID } from 'node:crypto'
import { isUnitStored, tableOfUnit } from '../../../clickhouse/cluster/shard-units.ts'
import type { IngestLogEntry } from '../../../clickhouse/tables/ingest-log-table.ts'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { replayedFrom } from '../../../shared/queue/letters/replayed-letter.ts'
import { decodePayload, encodePayload, type PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { newJobId } from '../../../shared/queue/queue.ts'
import { labelAt, type NamedBatch, RefusedCollector, STORED_IN_PART } from '../../queue/payloads/batch-record.ts'
import type { JobPart, PayloadStore } from '../../queue/payloads/payload-store.ts'
import type { AddJobs } from '../../queue/process-frames.ts'
import { entryOf } from '../log-entries.ts'

/**
 * Makes sure that no insert with this token can land any more on these days (days since 1970), and returns the days on
 * which one has landed before. May be repeated: the answer is the same.
 */
export type BurnToken = (
  table: string,
  deduplicationToken: string,
  days: readonly number[],
) => Promise<ReadonlySet<number>>

/** Dependencies of dividing a batch. */
interface DivideDeps {
  readonly store: Pick<PayloadStore, 'payload' | 'giveBack' | 'splitJob'>
  readonly addJobs: AddJobs
  readonly queue: QueueName
  readonly burnToken: BurnToken
}

/** The inserts of a batch that have landed: the days by table. */
export interface Landed {
  readonly days: ReadonlyMap<string, ReadonlySet<number>>
  /** Tables whose inserts have landed on all days on which they have rows. */
  readonly tables: ReadonlySet<string>
  /** All inserts have landed, and with them what receipts report. */
  readonly isWhole: boolean
}

const LOG_TABLE = 'ingest_log'
const NO_DAYS: ReadonlySet<number> = new Set()

/**
 * Finds out which inserts of a batch have landed, once none of them can land any more: the worker that sent them may still
 * run. Each day of receipt is deduplicated by itself. Returns undefined if the
 * batch is finished or divided.
 *
 * A day on which an insert has not landed may be one on which it had no rows. But each insert is sent once the one before is
 * confirmed, so a table has all its rows if a later table has any. That is true only while the token of the last table
 * is burned first: an insert with a burned token is confirmed too, and adds nothing.
 */
export async function findLanded(deps: DivideDeps, named: NamedBatch): Promise<Landed | undefined> {
  const { burnedId = '', formed, storedTables } = named
  const days = await daysOf(deps.store, named)
  if (days === undefined) return undefined
  const { received, logged } = days
  const tables = Object.keys(formed?.tables ?? {}).filter(table => !isUnitStored(storedTables, table))
  const landed = new Map<string, ReadonlySet<number>>()
  let isLaterThere = false
  for (const table of tables.toReversed()) {
    const found = await deps.burnToken(table, `${burnedId}:${table}`, [...received])
    landed.set(table, isLaterThere ? received : found)
    isLaterThere ||= found.size > 0
  }
  const hasAll = (table: string) => {
    const found = landed.get(table)
    return [...(tableOfUnit(table) === LOG_TABLE ? logged : received)].every(day => found?.has(day))
  }
  return {
    days: new Map(tables.map(table => [table, landed.get(table) ?? NO_DAYS])),
    tables: new Set(tables.filter(hasAll)),
    isWhole: tables.length > 0 && tables.every(hasAll),
  }
}

/**
 * Replaces each job of the batch by parts that are stored on their own: the requests that were refused, of which no table
 * has rows, and for each day the others, with the tables that have their rows. Returns false if the batch is finished or
 * another worker has divided it.
 */
export async function divideBatch(deps: DivideDeps, named: NamedBatch, { days }: Landed): Promise<boolean> {
  let rest = named
  for (const jobId of named.jobIds) {
    const payload = await deps.store.payload(jobId)
    if (payload === null) return false
    const parts = partsOf(named, jobId, decodePayload(payload), days)
    const payloadBytes = payload.length
    deps.store.giveBack(payload)
    await deps.store.splitJob(rest, payloadBytes, parts)
    // Needed even if another worker has split the job, since this connection may have sent the script twice.
    await deps.addJobs(deps.queue, parts)
    rest = { ...rest, jobIds: rest.jobIds.slice(1) }
  }
  return true
}

interface Group {
  readonly storedTables: readonly string[]
  readonly frames: PayloadFrame[]
  readonly unstored: RefusedCollector
}

function partsOf(
  { storedTables, unstored, formed }: NamedBatch,
  jobId: string,
  frames: readonly PayloadFrame[],
  landed: Landed['days'],
): JobPart[] {
  const groups = new Map<string, Group>()
  for (const [index, frame] of frames.entries()) {
    const label = labelAt(formed?.refused, jobId, index)
    const isRefused = label !== undefined && label !== STORED_IN_PART
    const tables = isRefused
      ? labelAt(unstored, jobId, index) === undefined
        ? storedTables
        : []
      : [...storedTables, ...[...landed].filter(([, days]) => days.has(dayOf(frame))).map(([table]) => table)]
    const key = JSON.stringify([isRefused, tables])
    const group = groups.get(key) ?? { storedTables: tables, frames: [], unstored: new RefusedCollector() }
    groups.set(key, group)
    if (label === STORED_IN_PART) group.unstored.add('', group.frames.length, label)
    group.frames.push(frame)
  }
  return [...groups.values()].map(group => {
    const part = newJobId()
    return {
      jobId: part,
      batchId: randomUUID(),
      payload: encodePayload(group.frames),
      frames: group.frames.length,
      storedTables: group.storedTables,
      unstored: { [part]: group.unstored.requests[''] ?? {} },
    }
  })
}

/** Days on which the requests of a batch have arrived, and those of the rows of its log: one row may count several requests. */
interface Days {
  readonly received: ReadonlySet<number>
  readonly logged: ReadonlySet<number>
}

/** Returns the days of a batch, or undefined if a payload is gone. */
async function daysOf(store: DivideDeps['store'], { jobIds }: NamedBatch): Promise<Days | undefined> {
  const received = new Set<number>()
  const logged = new Set<number>()
  for (const jobId of jobIds) {
    const payload = await store.payload(jobId)
    if (payload === null) return undefined
    const entries = new Map<string, IngestLogEntry>()
    for (const frame of decodePayload(payload)) {
      received.add(dayOf(frame))
      entryOf(entries, '', jobId, frame, replayedFrom(frame)?.replayedAtMs)
    }
    for (const entry of entries.values()) logged.add(dayOf(entry))
    store.giveBack(payload)
  }
  return { received, logged }
}

function dayOf({ receivedAtMs }: Pick<PayloadFrame, 'receivedAtMs'>): number {
  return Math.floor(receivedAtMs / DAY_MS)
}
