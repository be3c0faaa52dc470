import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectSessionDays } from '../../../clickhouse/queries/sessions/timeline/select-session-days.ts'
import {
  selectTimelineRows,
  selectTimelineTimes,
  type TimelineKey,
  type TimelinePosition,
} from '../../../clickhouse/queries/sessions/timeline/select-timeline.ts'
import { TIMELINE_KINDS, type TimelineEntry, type TimelineKind } from '../../../schemas/http/sessions/timeline.ts'
import { DAY_MS, MIB } from '../../../schemas/units.ts'
import { PRESENT_ENTRY } from './present-entry.ts'

/** Selects a page of a timeline. */
interface TimelineSearch extends Omit<TimelineKey, 'firstDay' | 'lastDay'> {
  readonly kinds: readonly TimelineKind[]
}

/** A page of a timeline. */
interface LoadedTimeline {
  readonly entries: readonly TimelineEntry[]
  /** The position of the last entry, or undefined on the last page. */
  readonly reached: TimelinePosition | undefined
}

/** Bytes of the entries of a page as JSON. */
const PAGE_BYTES = MIB

/**
 * Loads a page of the timeline of a session. The first query reads the times of its entries, of all kinds. The others then read
 * what is between the first and the last of them. Returns undefined if nothing of the session is retained in this workspace.
 */
export async function loadTimeline(
  client: ClickHouseClient,
  { kinds, ...search }: TimelineSearch,
  signal: AbortSignal,
): Promise<LoadedTimeline | undefined> {
  const days = await selectSessionDays(client, search, signal)
  if (days === undefined) return undefined
  const after = search.after && search.after.at >= search.since ? search.after : undefined
  const since = after?.at ?? search.since
  if (since > search.until) return { entries: [], reached: undefined }
  // Records and exceptions are received by themselves: shortly before the first request of the session, or after the last.
  const firstDay = dayAfter(days.firstDay, -1)
  const key = { ...search, since, after, firstDay, lastDay: dayAfter(days.lastDay, 1), limit: search.limit + 1 }
  const times = await selectTimelineTimes(client, key, kinds, signal)
  const isCut = times.length === key.limit
  const end = isCut ? times.at(-1) : undefined
  const present = TIMELINE_KINDS.filter(kind => times.some(time => time.kind === kind))
  const until = end?.at ?? key.until
  const found = await Promise.all(present.map(kind => entriesOf(client, { ...key, until }, kind, signal)))
  // At the last time, entries of later kinds are of the next page, with those of kinds that were not found yet.
  const isBefore = ({ position: { at, kind } }: PositionedEntry) =>
    end === undefined || at < end.at || rank(kind) <= rank(end.kind)
  const entries = found
    .flat()
    .filter(isBefore)
    .sort((a, b) => compare(a.position, b.position))
  const shown = entries.slice(0, Math.min(search.limit, countThatFits(entries)))
  const hasMore = isCut || shown.length < entries.length
  return {
    entries: shown.map(({ entry }) => entry),
    reached: hasMore ? shown.at(-1)?.position : undefined,
  }
}

interface PositionedEntry {
  readonly position: TimelinePosition
  readonly entry: TimelineEntry
}

async function entriesOf<K extends TimelineKind>(
  client: ClickHouseClient,
  key: TimelineKey,
  kind: K,
  signal: AbortSignal,
): Promise<PositionedEntry[]> {
  const rows = await selectTimelineRows(client, key, kind, signal)
  const present = PRESENT_ENTRY[kind]
  return rows.map(row => ({ position: { at: BigInt(row.at), kind, tie: row.tie }, entry: present(row) }))
}

function compare(a: TimelinePosition, b: TimelinePosition): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1
  if (a.kind !== b.kind) return rank(a.kind) - rank(b.kind)
  return a.tie < b.tie ? -1 : 1
}

const rank = (kind: TimelineKind) => TIMELINE_KINDS.indexOf(kind)

/** Returns how many of the first entries fit into a page, at least one. */
function countThatFits(entries: readonly PositionedEntry[]): number {
  let left = PAGE_BYTES
  const end = entries.findIndex(({ entry }) => {
    left -= Buffer.byteLength(JSON.stringify(entry))
    return left < 0
  })
  return end < 0 ? entries.length : Math.max(end, 1)
}

function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10)
}
