import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { AUDITED_TABLES, type AuditedTable } from '../../clickhouse/queries/audit/audited-tables.ts'
import { saveRequestCounts } from '../../clickhouse/queries/audit/save-request-counts.ts'
import { selectDroppedRecords } from '../../clickhouse/queries/audit/select-dropped-records.ts'
import { selectObjectKeys } from '../../clickhouse/queries/audit/select-object-keys.ts'
import {
  type AuditRange,
  type RequestBalance,
  selectFirstCountedHour,
  selectRequestBalance,
} from '../../clickhouse/queries/audit/select-request-balance.ts'
import { type RowDifference, selectRowBalance } from '../../clickhouse/queries/audit/select-row-balance.ts'
import type { QueueLoss } from '../../schemas/records/installation.ts'
import { DAY_S } from '../../schemas/units.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { counted } from '../terminal.ts'
import { findMissingObjects } from './find-missing-objects.ts'
import { hasHourOf, Judge, lossLine } from './judge.ts'
import {
  type AuditReport,
  type Difference,
  type DroppedLine,
  hourText,
  type LossLine,
  type RequestLine,
  refusedOf,
  requestLine,
  settledOf,
  type TableLine,
} from './report.ts'

/** The stores that are compared. */
interface AuditDeps {
  readonly queues: Queues
  /** Losses of the queues that are known. */
  readonly losses: readonly QueueLoss[]
  readonly clickhouse: ClickHouseClient
  readonly objects: Pick<ObjectStore, 'list'>
  readonly now: () => number
}

/** What is audited. Times are Unix seconds at full hours. An empty workspace means all. */
interface AuditOptions extends Omit<AuditRange, 'signal'> {
  /** Deadline of each query of ClickHouse. An audit has many, so it has none as a whole. */
  readonly queryTimeoutMs?: number
}

/** Part of an audit, whose signal is made for each query. */
type AuditedDay = Required<AuditOptions>

const OBJECTS_PER_READ = 10_000
/** A day of one table is counted in seconds. A query that waits for a busy server may take minutes. */
const QUERY_TIMEOUT_MS = 600_000

/**
 * Compares what edges, Redis, the log of the batches, tables and objects state about each surface and hour of arrival
 * (docs/api/receipts.md#audit). Works day by day. A difference counts if its hour is settled and a
 * second reading shows it too, so that work in progress is never one. Throws a TransientError if ClickHouse does not answer a query
 * in time.
 */
export async function runAudit(
  deps: AuditDeps,
  { queryTimeoutMs = QUERY_TIMEOUT_MS, ...range }: AuditOptions,
): Promise<AuditReport> {
  await saveRequestCounts(deps.queues, deps.clickhouse, deps.now())
  const judge = new Judge(deps, await selectFirstCountedHour(deps.clickhouse, AbortSignal.timeout(queryTimeoutMs)))
  const requests: RequestLine[] = []
  const differences: Difference[] = []
  const tables = new Map<string, TableLine>()
  const dropped: DroppedLine[] = []
  const objects = { named: 0, missing: 0 }
  for (const day of daysOf({ ...range, queryTimeoutMs })) {
    requests.push(...(await auditRequests(deps, judge, day, differences)))
    for (const table of AUDITED_TABLES) {
      const line = await auditRows(deps, judge, table, day, differences)
      const sum = tables.get(table.table)
      tables.set(table.table, sum ? addLine(sum, line) : line)
    }
    for (const line of await selectDroppedRecords(deps.clickhouse, timed(day)))
      dropped.push({ ...line, hour: hourText(line.hour) })
    await auditObjects(deps, day, objects, differences)
  }
  const losses = deps.losses.map(lossLine).filter(line => hasHourOf(line, range))
  const { from, to } = range
  const hours = { from: hourText(from), to: hourText(to) }
  return { ...hours, losses, requests, tables: [...tables.values()], dropped, objects, differences }
}

/** Yields the parts of a range that lie in one day. */
function* daysOf(range: AuditedDay): Generator<AuditedDay> {
  for (let from = range.from; from < range.to; ) {
    const to = Math.min(range.to, (Math.floor(from / DAY_S) + 1) * DAY_S)
    yield { ...range, from, to }
    from = to
  }
}

/** Returns a part of an audit for one query, whose time begins. */
function timed({ queryTimeoutMs, ...range }: AuditedDay): AuditRange {
  return { ...range, signal: AbortSignal.timeout(queryTimeoutMs) }
}

function addLine(a: TableLine, b: TableLine): TableLine {
  const { table } = a
  return { table, logged: a.logged + b.logged, deleted: a.deleted + b.deleted, present: a.present + b.present }
}

async function auditRequests(
  { queues, clickhouse, now }: AuditDeps,
  judge: Judge,
  day: AuditedDay,
  differences: Difference[],
): Promise<RequestLine[]> {
  const before = await selectRequestBalance(clickhouse, timed(day))
  const settled = new Set((await judge.settled(before, ({ kind }) => [kind])).map(keyOf))
  // Read again, because an hour may have been settled since. The counts of a request may have been copied only in part.
  if (settled.size > 0) await saveRequestCounts(queues, clickhouse, now())
  const balances = settled.size > 0 ? await selectRequestBalance(clickhouse, timed(day)) : before
  for (const balance of balances) {
    if (!settled.has(keyOf(balance))) continue
    for (const text of faultsOf(balance, judge.lossOf(balance.hour)))
      differences.push(differenceOf('requests', balance, text))
  }
  const bySurface = Map.groupBy(balances, ({ workspaceId, surfaceId, hour }) => `${hour} ${workspaceId} ${surfaceId}`)
  return [...bySurface.values()].map(kinds => {
    const open = kinds.find(kind => !settled.has(keyOf(kind)))
    return requestLine(kinds[0]?.hour ?? 0, kinds, open && judge.whyNot(open))
  })
}

function keyOf({ hour, workspaceId, surfaceId, kind }: RequestBalance): string {
  return `${hour} ${workspaceId} ${surfaceId} ${kind}`
}

/** Returns what does not add up for a surface, kind and hour that is settled. */
function faultsOf(balance: RequestBalance, loss: LossLine | undefined): string[] {
  const { kind, accepted, acknowledged } = balance
  const settled = settledOf(balance)
  const counts = `(${accepted} accepted, ${settled} settled)`
  if (loss !== undefined) {
    // Counts of up to a minute are lost too, so nothing else adds up.
    if (accepted <= settled) return []
    return [`at least ${accepted - settled} ${kind} lost ${counts}, with the data of the queues before ${loss.found}`]
  }
  const faults: string[] = []
  const { received, done, unconfirmed } = balance
  const ended = refusedOf(balance) + done + acknowledged + unconfirmed
  if (received !== ended) {
    faults.push(
      `${Math.abs(received - ended)} ${kind} ${received > ended ? 'received without an outcome' : 'with an outcome and not received'} ` +
        `(${received} received, ${ended} refused, done, acknowledged or unconfirmed)`,
    )
  }
  if (acknowledged > accepted) {
    faults.push(
      `${acknowledged - accepted} ${kind} acknowledged and not accepted (${acknowledged} against ${accepted})`,
    )
  }
  if (accepted > settled) faults.push(`${accepted - settled} ${kind} lost ${counts}`)
  if (accepted < settled) {
    faults.push(`${settled - accepted} ${kind} settled and not accepted ${counts}`)
  }
  return faults
}

async function auditRows(
  { clickhouse }: AuditDeps,
  judge: Judge,
  table: AuditedTable,
  day: AuditedDay,
  differences: Difference[],
): Promise<TableLine> {
  const first = await selectRowBalance(clickhouse, table, timed(day))
  const settled = await judge.settled(first.differences, () => table.kinds)
  const balance = settled.length > 0 ? await selectRowBalance(clickhouse, table, timed(day)) : first
  const known = new Set(settled.map(rowKey))
  for (const difference of balance.differences) {
    if (known.has(rowKey(difference))) differences.push(differenceOf(table.table, difference, rowText(difference)))
  }
  return { table: table.table, logged: balance.logged, deleted: balance.deleted, present: balance.present }
}

function rowKey({ hour, workspaceId, surfaceId }: RowDifference): string {
  return `${hour} ${workspaceId} ${surfaceId}`
}

function rowText({ logged, deleted, present }: RowDifference): string {
  const missing = logged - deleted - present
  const what = missing > 0 ? `${counted(missing, 'row')} missing` : `${counted(-missing, 'row')} too many`
  return `${what} (${logged} stored, ${deleted} deleted on purpose, ${present} in the table)`
}

async function auditObjects(
  { clickhouse, objects }: AuditDeps,
  day: AuditedDay,
  counts: { named: number; missing: number },
  differences: Difference[],
): Promise<void> {
  for (let after = ''; ; ) {
    const named = await selectObjectKeys(clickhouse, timed(day), after, OBJECTS_PER_READ)
    const suspects = await findMissingObjects(objects, named)
    // A row whose data is being erased may have lost its object already.
    const still =
      suspects.length === 0 ? new Set() : await stillNamed(clickhouse, day, after, named.at(-1)?.objectKey ?? '')
    for (const object of suspects) {
      if (!still.has(object.objectKey)) continue
      counts.missing++
      const text =
        object.bytes === undefined
          ? `object missing: ${object.objectKey}`
          : `object too short (${object.bytes} of ${object.leastBytes} bytes): ${object.objectKey}`
      differences.push(differenceOf(object.table, object, text))
    }
    counts.named += named.length
    const last = named.at(-1)
    if (last === undefined || named.length < OBJECTS_PER_READ) return
    after = last.objectKey
  }
}

async function stillNamed(
  clickhouse: ClickHouseClient,
  day: AuditedDay,
  after: string,
  last: string,
): Promise<Set<string>> {
  const named = await selectObjectKeys(clickhouse, timed(day), after, OBJECTS_PER_READ)
  return new Set(named.map(({ objectKey }) => objectKey).filter(key => key <= last))
}

function differenceOf(
  table: string,
  { workspaceId, surfaceId, hour }: { workspaceId: string; surfaceId: string; hour: number },
  text: string,
): Difference {
  const at = hourText(hour)
  return { table, workspaceId, surfaceId, hour: at, day: at.slice(0, 10), text }
}
