import { z } from 'zod'
import { selectFinding } from '../../clickhouse/queries/findings/select-finding.ts'
import { selectRecordings } from '../../clickhouse/queries/findings/select-finding-values.ts'
import {
  type ListedOccurrenceRow,
  type OccurrenceKey,
  selectOccurrences,
} from '../../clickhouse/queries/findings/select-occurrences.ts'
import { selectSessionUsers } from '../../clickhouse/queries/sessions/select-listed-sessions.ts'
import {
  type ListedOccurrence,
  type ListOccurrencesQuery,
  listFindingOccurrences,
  listOccurrencesQuerySchema,
  type OccurrencesPage,
} from '../../schemas/http/findings/occurrences.ts'
import { OCCURRENCE_MESSAGE_MAX } from '../../schemas/http/findings/schemas.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { Route } from '../../shared/http/route.ts'
import { releaseSlugOf } from '../../shared/ids/release-slug.ts'
import { type CurrentFindingDeps, readCurrentFinding } from '../http/current-finding.ts'
import { cutPage, decodeCursor, digestOf, encodeCursor, type ListIdentity, OTHER_LIST } from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { presentOccurrence } from './load-finding.ts'

/** Dependencies of a page of occurrences. */
interface OccurrencesDeps extends CurrentFindingDeps {
  readonly releases: Pick<ReleaseStore, 'release'>
  readonly now: () => number
}

/** Returns the route that lists the occurrences of a finding (docs/api/findings.md#occurrences). */
export function listOccurrencesRoute(deps: GuardedRouteDeps & OccurrencesDeps): Route {
  return guardedRoute(deps, listFindingOccurrences, {
    resource: FINDINGS,
    query: listOccurrencesQuerySchema,
    run: ({ param, caller, ...request }) =>
      readOccurrencesPage(deps, request, param('findingId'), { people: caller.permissions.has('org:sessions:read') }),
  })
}

/** Reads a page of the occurrences of a finding. `people` states whether the caller may see whom they hit. */
async function readOccurrencesPage(
  deps: OccurrencesDeps,
  { workspaceId, query, deadline }: CallerRead<ListOccurrencesQuery>,
  findingId: string,
  { people }: { readonly people: boolean },
): Promise<Outcome<OccurrencesPage>> {
  const { limit, cursor } = query
  // The position of an entry is the same in any time.
  const list = ['finding occurrences', workspaceId, findingId]
  const after = decodeOccurrenceCursor(list, cursor)
  if (!after.ok) return after
  const rows = await readCurrentFinding(
    deps,
    { workspaceId, findingId },
    deadline,
    async ({ findingIds, variantIds }) => {
      const range = { workspaceId, findingIds, variantIds, ...receivedRange(query, deps.now()) }
      const page = { ...range, limit: limit + 1, messageLength: OCCURRENCE_MESSAGE_MAX, after: after.value }
      const found = await selectOccurrences(deps.clickhouse, page, deadline)
      if (found.length > 0) return found
      // A finding may have no occurrences in the time, or none after the cursor.
      return (await selectFinding(deps.clickhouse, range, deadline)) && found
    },
  )
  if (rows === undefined) return notFound(FINDINGS)
  const { shown, nextCursor } = cutPage(rows, limit, last =>
    encodeOccurrenceCursor(list, last, countEqual(rows.slice(0, limit), last, after.value)),
  )
  const occurrences = await presentOccurrences(deps, workspaceId, shown, people, deadline)
  return { ok: true, value: { occurrences, nextCursor } }
}

/** Returns the requested time of arrival. Arrivals of now are before its end, whichever clock is ahead. */
export function receivedRange(
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } {
  const endMs = nowMs + HOUR_MS
  const toMs = Math.min(Math.max(to === undefined ? endMs : Date.parse(to), 0), endMs)
  return { fromMs: Math.min(Math.max(from === undefined ? 0 : Date.parse(from), 0), toMs), toMs }
}

/** An entry at which a page ends, and how many with its key were shown. */
interface OccurrenceCursor {
  readonly key: OccurrenceKey
  readonly shown: number
}

const digits = z.string().regex(/^\d{1,20}$/)
const cursorSchema = z
  .tuple([z.string(), digits, digits, digits, z.number().int().min(1).max(1_000_000)])
  .transform(([list, receivedMs, occurredUnixNano, tie, shown]) => ({
    list,
    after: { key: { receivedMs, occurredUnixNano, tie }, shown },
  }))

function encodeOccurrenceCursor(list: ListIdentity, key: OccurrenceKey, shown: number): string {
  return encodeCursor([digestOf(list), key.receivedMs, key.occurredUnixNano, key.tie, shown])
}

function decodeOccurrenceCursor(list: ListIdentity, text: string | undefined): Outcome<OccurrenceCursor | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok) return cursor
  if (cursor.value !== undefined && cursor.value.list !== digestOf(list)) return OTHER_LIST
  return { ok: true, value: cursor.value?.after }
}

/** Counts the entries with the key of the last one that this page and those before it have shown. */
function countEqual(rows: readonly OccurrenceKey[], last: OccurrenceKey, before: OccurrenceCursor | undefined): number {
  const isEqual = (key: OccurrenceKey) =>
    key.receivedMs === last.receivedMs && key.occurredUnixNano === last.occurredUnixNano && key.tie === last.tie
  const own = rows.filter(isEqual).length
  return before !== undefined && isEqual(before.key) ? own + before.shown : own
}

/** How far the moment of an exception may be outside of its recording, whose last chunk is often lost with the page. */
const RECORDING_EDGE_MS = 10_000

async function presentOccurrences(
  { clickhouse, releases }: OccurrencesDeps,
  workspaceId: string,
  rows: readonly ListedOccurrenceRow[],
  showsPeople: boolean,
  signal: AbortSignal,
): Promise<ListedOccurrence[]> {
  const sessionIds = [...new Set(rows.map(({ sessionId }) => sessionId))].filter(id => id !== '')
  const key = { workspaceId, sessionIds }
  const slugs = new Set(rows.flatMap(row => (row.serviceVersion === '' ? [] : [slugOf(workspaceId, row)])))
  const [users, recordings, known] = await Promise.all([
    showsPeople && sessionIds.length > 0 ? selectSessionUsers(clickhouse, key, { textCharacters: 1_024 }, signal) : [],
    sessionIds.length > 0 ? selectRecordings(clickhouse, key, signal) : [],
    Promise.all([...slugs].map(slug => queryDirectory(releases.release(workspaceId, slug)))),
  ])
  const people = new Map(users.map(({ id, identifier }) => [id, identifier]))
  const recorded = new Map(
    recordings.map(({ id, firstMs, lastMs }) => [id, [Number(firstMs), Number(lastMs)] as const]),
  )
  const registered = new Set(known.flatMap(release => (release === undefined ? [] : [release.slug])))
  return rows.map(row => {
    const { surfaceId, browser, system, route, environment, host } = row
    const slug = slugOf(workspaceId, row)
    const person = people.get(row.sessionId)
    const recordedMs = momentIn(recorded.get(row.sessionId), Number(BigInt(row.occurredUnixNano) / 1_000_000n))
    return {
      ...presentOccurrence(row),
      surfaceId,
      ...(registered.has(slug) && { releaseSlug: slug }),
      ...Object.fromEntries(
        Object.entries({ browser, system, route, environment, host }).filter(([, text]) => text !== ''),
      ),
      ...(person !== undefined && { person }),
      ...(recordedMs !== undefined && { recordedAt: rfc3339FromUnixMs(recordedMs) }),
    }
  })
}

function slugOf(workspaceId: string, { surfaceId, serviceVersion }: ListedOccurrenceRow): string {
  return releaseSlugOf({ workspaceId, surfaceId, name: serviceVersion })
}

function momentIn(recording: readonly [firstMs: number, lastMs: number] | undefined, atMs: number): number | undefined {
  if (recording === undefined) return undefined
  const [firstMs, lastMs] = recording
  if (atMs < firstMs - RECORDING_EDGE_MS || atMs > lastMs + RECORDING_EDGE_MS) return undefined
  return Math.min(Math.max(atMs, firstMs), lastMs)
}
