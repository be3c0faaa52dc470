import { z } from 'zod'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectFindingsOfVariants } from '../../clickhouse/queries/attributes/membership.ts'
import { selectSessionDays } from '../../clickhouse/queries/sessions/timeline/select-session-days.ts'
import {
  selectTimelineRows,
  selectTimelineTimes,
  type TimelineKey,
  type TimelinePosition,
  UNIX_NANO_MAX,
} from '../../clickhouse/queries/sessions/timeline/select-timeline.ts'
import type { TimelineRow, TimelineRows } from '../../clickhouse/queries/sessions/timeline/timeline-sources.ts'
import { readTimeline } from '../../schemas/http/sessions/operations.ts'
import { sessionIdSchema } from '../../schemas/http/sessions/schemas.ts'
import {
  readTimelineQuerySchema,
  TIMELINE_KINDS,
  type TimelineEntry,
  type TimelineKind,
  type TimelinePage,
} from '../../schemas/http/sessions/timeline.ts'
import { SPAN_STATUSES } from '../../schemas/http/traces/schemas.ts'
import { DAY_MS, MIB } from '../../schemas/units.ts'
import type { FairSlots } from '../../shared/concurrency/fair-slots.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { FindingMerges } from '../../shared/directory/findings/finding-merges.ts'
import type { Route } from '../../shared/http/route.ts'
import { decodeCursor, digestOf, encodeCursor, type ListIdentity, OTHER_LIST } from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { millisecondsBetween, rfc3339FromUnixMs, rfc3339FromUnixNano, unixNanoOf } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound, SESSIONS } from '../http/resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingMerges'>
  /** Slots for the queries of a page. */
  readonly sessionReads: Pick<FairSlots, 'run'>
}

/** Returns the route that reads everything of a session on one clock, the oldest first (docs/api/sessions.md#session-timeline). */
export function readTimelineRoute(deps: Deps): Route {
  return guardedRoute(deps, readTimeline, {
    resource: SESSIONS,
    query: readTimelineQuerySchema,
    run: ({ param, ...request }) => readTimelinePage(deps, request, param('sessionId')),
  })
}

/** Reads a page of the timeline of a session. */
export async function readTimelinePage(
  { clickhouse, directory, sessionReads }: Omit<Deps, keyof GuardedRouteDeps>,
  { workspaceId, query, deadline }: CallerRead<z.infer<typeof readTimelineQuerySchema>>,
  sessionId: string,
): Promise<Outcome<TimelinePage>> {
  const { limit, cursor, kinds = TIMELINE_KINDS, from, to } = query
  const since = from === undefined ? 0n : unixNanoOf(from, UNIX_NANO_MAX)
  const until = to === undefined ? UNIX_NANO_MAX : unixNanoOf(to, UNIX_NANO_MAX) - 1n
  const list = ['timeline', workspaceId, sessionId, kinds, String(since), String(until)]
  const after = decodeTimelineCursor(list, cursor)
  if (!after.ok) return after
  if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
  const merges = await queryDirectory(directory.findingMerges(workspaceId))
  const search = { workspaceId, sessionId, kinds, since, until, after: after.value, limit, merges }
  const load = () => loadTimeline(clickhouse, search, deadline)
  const timeline = await sessionReads.run(workspaceId, load, deadline)
  if (timeline === undefined) return notFound(SESSIONS)
  const { entries, reached } = timeline
  return {
    ok: true,
    value: {
      entries: [...entries],
      nextCursor: reached === undefined ? null : encodeTimelineCursor(list, reached),
    },
  }
}

/** Selects a page of a timeline. */
interface TimelineSearch extends Omit<TimelineKey, 'firstDay' | 'lastDay'> {
  readonly kinds: readonly TimelineKind[]
  readonly merges: FindingMerges
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
  { kinds, merges, ...search }: TimelineSearch,
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
  const found = await Promise.all(present.map(kind => entriesOf(client, { ...key, until }, kind, merges, signal)))
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
  merges: FindingMerges,
  signal: AbortSignal,
): Promise<PositionedEntry[]> {
  const rows = await selectTimelineRows(client, key, kind, signal)
  const present = PRESENT_ENTRY[kind]
  const variantIds = rows.flatMap(row => ('variantId' in row ? [row.variantId] : []))
  const findings = await selectFindingsOfVariants(client, { workspaceId: key.workspaceId, variantIds, merges }, signal)
  return rows.map(row => ({ position: { at: BigInt(row.at), kind, tie: row.tie }, entry: present(row, findings) }))
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

type Presenters = {
  readonly [K in TimelineKind]: (
    row: TimelineRows[K],
    findings: ReadonlyMap<string, string>,
  ) => Extract<TimelineEntry, { readonly kind: K }>
}

/** Present rows as entries of a timeline, by their kinds, with the findings of variants. Absent members are left out. */
const PRESENT_ENTRY: Presenters = {
  span: row => ({
    kind: 'span',
    ...common(row),
    traceId: row.traceId,
    spanId: row.spanId,
    ...(isPresent(row.parentSpanId) && { parentSpanId: row.parentSpanId }),
    name: row.spanName,
    serviceName: row.serviceName,
    durationMs: millisecondsBetween(BigInt(row.at), BigInt(row.endUnixNano)),
    status: SPAN_STATUSES[row.statusCode] ?? SPAN_STATUSES[0],
  }),
  log: row => ({
    kind: 'log',
    ...common(row),
    ...presentIds(row),
    serviceName: row.serviceName,
    severityNumber: row.severityNumber,
    ...(row.severityText && { severityText: row.severityText }),
    ...(row.eventName && { eventName: row.eventName }),
    body: row.bodyText,
  }),
  finding: (row, findings) => ({
    kind: 'finding',
    ...common(row),
    ...presentIds(row),
    findingId: findings.get(row.variantId) ?? row.findingId,
    serviceName: row.serviceName,
    type: row.exceptionType,
    message: row.exceptionMessage,
  }),
  heartbeat: row => ({ kind: 'heartbeat', ...common(row), ...presentDevice(row) }),
  identity: row => ({
    kind: 'identity',
    ...common(row),
    identifier: row.identifierText,
    source: { type: row.sourceType, name: row.sourceName },
    ...(row.userName && { name: row.userName }),
    ...(row.userEmail && { email: row.userEmail }),
    ...presentDevice(row),
  }),
  replay: row => ({
    kind: 'replay',
    ...common(row),
    chunkId: row.chunkId,
    windowId: row.windowId,
    segmentId: row.segmentId,
    endsAt: rfc3339FromUnixMs(Number(row.lastEventMs)),
    eventCount: row.eventCount,
    hasFullSnapshot: row.hasFullSnapshot,
  }),
}

function common({ at, receivedCount, surfaceId }: TimelineRow) {
  return { at: rfc3339FromUnixNano(BigInt(at)), receivedCount: Number(receivedCount), surfaceId }
}

const isPresent = (id: string) => !/^0+$/.test(id)

function presentIds({ traceId, spanId }: { readonly traceId: string; readonly spanId: string }) {
  return { ...(isPresent(traceId) && { traceId }), ...(isPresent(spanId) && { spanId }) }
}

function presentDevice({ deviceId, visitorId }: { readonly deviceId: string; readonly visitorId: string }) {
  return { ...(deviceId && { deviceId }), ...(visitorId && { visitorId }) }
}

const cursorSchema = z
  .tuple([
    z.string(),
    z
      .string()
      .regex(/^\d{1,20}$/)
      .refine(digits => BigInt(digits) <= UNIX_NANO_MAX),
    z.enum(TIMELINE_KINDS),
    z.string().regex(/^[0-9a-f]{32}$/),
  ])
  .transform(([list, at, kind, tie]) => ({ list, position: { at: BigInt(at), kind, tie } }))

/** Encodes the position after which the next page of a timeline begins. */
function encodeTimelineCursor(list: ListIdentity, { at, kind, tie }: TimelinePosition): string {
  return encodeCursor([digestOf(list), String(at), kind, tie])
}

/** Decodes a cursor, and refuses one that another timeline has returned. */
function decodeTimelineCursor(list: ListIdentity, text: string | undefined): Outcome<TimelinePosition | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok) return cursor
  if (cursor.value === undefined) return { ok: true, value: undefined }
  const { list: digest, position } = cursor.value
  return digest === digestOf(list) ? { ok: true, value: position } : OTHER_LIST
}
