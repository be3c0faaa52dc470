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
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { DAY_S, HOUR_S } from '../../schemas/units.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { OTHER_SURFACES } from '../../shared/queue/request-counts.ts'
import { readWatermarks } from '../../shared/queue/watermark.ts'
import { counted } from '../terminal.ts'
import { findMissingObjects } from './find-missing-objects.ts'
import {
  type AuditReport,
  type Difference,
  type DroppedLine,
  hourText,
  type RequestLine,
  refusedOf,
  requestLine,
  settledOf,
  type TableLine,
} from './report.ts'

/** The stores that are compared. */
interface AuditDeps {
  readonly queues: Queues
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

/**
 * An hour is judged when everything accepted until this long after its end is settled: a request is accepted within 17 s of
 * its arrival, and the clocks of edges differ a little (docs/api/receipts.md#watermarks).
 */
const SETTLING_S = 120
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
  const { from, to } = range
  const hours = { from: hourText(from), to: hourText(to) }
  return { ...hours, requests, tables: [...tables.values()], dropped, objects, differences }
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

type NotJudged = NonNullable<RequestLine['notJudged']>

/** Decides which hours of a surface are settled, by its watermarks. */
class Judge {
  readonly #deps: AuditDeps
  readonly #firstHour: number

  /** Nothing is known of requests that arrived in the first hour that is counted, or before. */
  constructor(deps: AuditDeps, firstCountedHour: number | undefined) {
    this.#deps = deps
    this.#firstHour = firstCountedHour === undefined ? Number.POSITIVE_INFINITY : firstCountedHour + HOUR_S
  }

  /** Returns why an entry that is not settled is not judged. */
  whyNot(entry: { readonly workspaceId: string; readonly surfaceId: string; readonly hour: number }): NotJudged {
    if (entry.hour < this.#firstHour) return 'not_counted'
    return `${entry.workspaceId}/${entry.surfaceId}` === OTHER_SURFACES ? 'other_surfaces' : 'unsettled'
  }

  /** Returns those of the entries whose hour is settled for these kinds of requests. */
  async settled<T extends { workspaceId: string; surfaceId: string; hour: number }>(
    entries: readonly T[],
    kindsOf: (entry: T) => readonly AdmittedQueue[],
  ): Promise<T[]> {
    const isCounted = (entry: T) =>
      entry.hour >= this.#firstHour && `${entry.workspaceId}/${entry.surfaceId}` !== OTHER_SURFACES
    const counted = entries.filter(isCounted)
    const surfaces = [...new Map(counted.map(entry => [`${entry.workspaceId}/${entry.surfaceId}`, entry])).values()]
    const marks = new Map<string, Readonly<Record<AdmittedQueue, number>>>()
    for (let i = 0; i < surfaces.length; i += 500) {
      const page = surfaces.slice(i, i + 500)
      const read = await readWatermarks(this.#deps.queues, page)
      for (const [j, { workspaceId, surfaceId }] of page.entries()) {
        const settled = read.surfaces[j]?.settledBeforeMs
        if (settled) marks.set(`${workspaceId}/${surfaceId}`, settled)
      }
    }
    return counted.filter(entry => {
      const settled = marks.get(`${entry.workspaceId}/${entry.surfaceId}`)
      const neededMs = (entry.hour + HOUR_S + SETTLING_S) * 1_000
      return settled !== undefined && kindsOf(entry).every(kind => settled[kind] >= neededMs)
    })
  }
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
    for (const text of faultsOf(balance)) differences.push(differenceOf('requests', balance, text))
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
function faultsOf(balance: RequestBalance): string[] {
  const { kind, accepted, acknowledged } = balance
  const settled = settledOf(balance)
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
  if (accepted > settled) faults.push(`${accepted - settled} ${kind} lost (${accepted} accepted, ${settled} settled)`)
  if (accepted < settled) {
    faults.push(`${settled - accepted} ${kind} settled and not accepted (${accepted} accepted, ${settled} settled)`)
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
