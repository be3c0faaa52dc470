import { setTimeout as delay } from 'node:timers/promises'
import type { Signal } from '../../schemas/queues/names.ts'
import type { LoadResult, PayloadPlan } from '../load/plan.ts'
import type { BenchClickHouse } from '../services/start-stores.ts'
import { bytesOnDisk, settleMerges, truncateTables, writtenBlocks } from './clickhouse-work.ts'
import { untilSame } from './measure-stored.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** Time without a new row, and time in total, after which a round has failed. */
const STALL_MS = 20_000
const STORED_DEADLINE_MS = 120_000
const POLL_MS = 50

/** Signal and number of records in each payload, and for spans their values and encoding (`PayloadPlan`). */
export interface PipelineLoad extends Pick<PayloadPlan, 'data' | 'gzip'> {
  readonly signal: Signal
  readonly records: number
  /** The load ends earlier when this many records were accepted. */
  readonly recordLimit?: number
}

/** Result of sending. `load` is set if the load generator was used. */
interface Sent {
  readonly accepted: number
  readonly load?: LoadResult
}

/** One implementation of a pipeline into ClickHouse. */
export interface PipelineContender {
  readonly name: string
  /** Pids of the processes whose CPU time counts. */
  readonly pids: Readonly<Record<string, number>>
  /** Database in which every accepted record becomes a row. All its tables are emptied after a round. */
  readonly database: string
  readonly table: string
  /** Sends for about this time. Calls `onBegin` before the first request, and resolves when no request is in flight. */
  send(load: PipelineLoad, durationMs: number, onBegin: () => void): Promise<Sent>
  /** Returns the inserts and rows since the start. Default: those of all tables. */
  inserts?(): Promise<{ inserts: number; rows: number }>
  /** Returns counters that only grow, such as bytes on the network. A round has their differences. */
  counters?(): Promise<Readonly<Record<string, number>>>
}

/** Result of one round. */
export interface PipelineMeasured {
  readonly records: number
  /** Time from the first request until the last record could be queried. */
  readonly seconds: number
  /** Use of the processes, including the merges that the inserts caused. */
  readonly use: Readonly<Record<string, ProcessUse>>
  readonly load?: LoadResult
  readonly rowsPerInsert: number
  /** How often merges wrote a row of any table again. */
  readonly rewrites: number
  /** Whether merges were at rest at the end. */
  readonly isAtRest: boolean
  /** Bytes of all tables of the database on disk, after the merges. */
  readonly storedBytes: number
  /** Growth of the contender's counters. */
  readonly counted: Readonly<Record<string, number>>
}

/**
 * Measures one round of one contender. Throws if the number of stored records differs from the number accepted, after
 * everything that the contender still stores was removed.
 */
export async function measurePipeline(
  clickhouse: BenchClickHouse,
  contender: PipelineContender,
  load: PipelineLoad,
  durationMs: number,
  mergesDeadlineMs?: number,
): Promise<PipelineMeasured> {
  try {
    return await measureOnce(clickhouse, contender, load, durationMs, mergesDeadlineMs)
  } catch (error) {
    await untilSame(() => countRows(clickhouse, contender))
    await truncateTables(clickhouse.client, contender.database)
    throw error
  }
}

async function measureOnce(
  clickhouse: BenchClickHouse,
  contender: PipelineContender,
  load: PipelineLoad,
  durationMs: number,
  mergesDeadlineMs: number | undefined,
): Promise<PipelineMeasured> {
  const countInserts = contender.inserts ?? (() => writtenBlocks(clickhouse.client))
  const before = await countInserts()
  const writtenBefore = await writtenBlocks(clickhouse.client)
  const countersBefore = await contender.counters?.()
  const meter = meterProcesses(contender.pids)
  let startedAt = 0
  const sent = await contender.send(load, durationMs, () => {
    meter.begin()
    startedAt = performance.now()
  })
  await untilStored(clickhouse, contender, sent.accepted)
  const seconds = (performance.now() - startedAt) / 1_000
  const isAtRest = await settleMerges(clickhouse.client, mergesDeadlineMs)
  const use = meter.end()
  const after = await countInserts()
  const written = await writtenBlocks(clickhouse.client)
  const countersAfter = await contender.counters?.()
  // Duplicates can appear late.
  assertStored(contender, await countRows(clickhouse, contender), sent.accepted)
  const storedBytes = await bytesOnDisk(clickhouse.client, contender.database)
  await truncateTables(clickhouse.client, contender.database)
  return {
    records: sent.accepted,
    seconds,
    use,
    ...(sent.load && { load: sent.load }),
    rowsPerInsert: (after.rows - before.rows) / (after.inserts - before.inserts),
    rewrites: (written.merged - writtenBefore.merged) / (written.rows - writtenBefore.rows),
    isAtRest,
    storedBytes,
    counted: Object.fromEntries(
      Object.entries(countersAfter ?? {}).map(([name, count]) => [name, count - (countersBefore?.[name] ?? 0)]),
    ),
  }
}

async function untilStored(clickhouse: BenchClickHouse, contender: PipelineContender, accepted: number): Promise<void> {
  const deadline = performance.now() + STORED_DEADLINE_MS
  let stored = -1
  let grewAt = performance.now()
  for (;;) {
    const now = performance.now()
    const found = await countRows(clickhouse, contender)
    if (found >= accepted) return assertStored(contender, found, accepted)
    if (found > stored) grewAt = now
    else if (now - grewAt > STALL_MS || now > deadline) {
      const waited = Math.round((now - grewAt) / 1_000)
      throw new Error(
        `${contender.name}: ${found} of ${accepted} accepted records can be queried, and no more appeared for ${waited} s`,
      )
    }
    stored = found
    await delay(POLL_MS)
  }
}

function assertStored({ name }: PipelineContender, found: number, accepted: number): void {
  if (found !== accepted) throw new Error(`${name}: ${found} records can be queried, ${accepted} were accepted`)
}

async function countRows({ client }: BenchClickHouse, { database, table }: PipelineContender): Promise<number> {
  const result = await client.query({ query: `SELECT count() AS n FROM ${database}.${table}`, format: 'JSONEachRow' })
  const [row] = await result.json<{ n: number }>()
  return Number(row?.n)
}
