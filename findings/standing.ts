import { createHash } from 'node:crypto'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import { selectRecurrences } from '../clickhouse/queries/findings/select-recurrences.ts'
import { selectVersionsSince } from '../clickhouse/queries/findings/select-versions.ts'
import type { Finding } from '../schemas/http/findings/schemas.ts'
import { REGRESSED_IN_MAX } from '../schemas/http/findings/work.ts'
import { type FindingWork, KNOWN_VERSIONS_MAX } from '../schemas/records/finding-work.ts'
import { DAY_MS } from '../schemas/units.ts'
import type { FindingMerges } from '../shared/directory/findings/finding-merges.ts'

/** Sources from which the status of findings is decided. */
interface StandingSources {
  readonly clickhouse: ClickHouseClient
  /** Returns what members have made of findings, in their order; undefined for a finding without work. */
  readonly findingWork: (workspaceId: string, findingIds: readonly string[]) => Promise<(FindingWork | undefined)[]>
  readonly now: () => number
}

/** A workspace and its merges, by which the occurrences of its findings are joined. */
export interface MergedWorkspace {
  readonly workspaceId: string
  readonly merges: FindingMerges
}

/**
 * Returns the standing of these findings, by id. Only those whose status depends on what has occurred since are looked up in
 * ClickHouse.
 */
export async function loadStandings(
  { clickhouse, findingWork, now }: StandingSources,
  workspace: MergedWorkspace,
  findingIds: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, Standing>> {
  const works = await findingWork(workspace.workspaceId, findingIds)
  const known = works.filter(work => work !== undefined)
  const since = await loadSince(clickhouse, workspace, known, signal)
  const nowMs = now()
  return new Map(
    findingIds.map((findingId, i) => [findingId, standingOf(works[i], since.get(findingId), nowMs)] as const),
  )
}

/** Returns what has occurred of these findings since their status was chosen, by id, as far as the status depends on it. */
async function loadSince(
  client: ClickHouseClient,
  workspace: MergedWorkspace,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<Map<string, Since>> {
  const asked = works.filter(dependsOnOccurrences)
  const sinceDay = ({ findingId, statusAt }: FindingWork) => ({
    findingId,
    day: Math.floor(Date.parse(statusAt ?? '') / DAY_MS),
  })
  const recurrences = await selectRecurrences(client, workspace, asked.map(sinceDay), signal)
  const counts = new Map(
    recurrences.map(({ id, lastReceivedMs, occurrenceCount }) => [
      id,
      { lastReceivedMs: Number(lastReceivedMs), occurrenceCount: Number(occurrenceCount) },
    ]),
  )
  const returned = asked.filter(work => hasReturned(work, counts.get(work.findingId)))
  // One more than a resolution remembers: if there are more, at least one is not known.
  const limit = KNOWN_VERSIONS_MAX + 1
  const versions = await selectVersionsSince(client, workspace, returned.map(sinceDay), limit, signal)
  return new Map([...counts].map(([id, count]) => [id, { ...count, versions: versions.get(id) ?? [] }]))
}

/** Occurrences of a finding since the day on which its status was chosen. */
interface Since {
  /** When the last occurrence was received, Unix ms. */
  readonly lastReceivedMs: number
  /** Number of occurrences since the beginning of the day. */
  readonly occurrenceCount: number
  /** Versions that occurred, as far as they matter. */
  readonly versions: readonly string[]
}

/** The fields of a finding that show what members have made of it. */
export type Standing = Pick<
  Finding,
  'status' | 'statusChangedAt' | 'assignee' | 'ignoredUntil' | 'occurrencesUntilOpen' | 'regressedIn' | 'splitFrom'
>

/** Returns the digest by which a version is remembered. */
export function versionDigest(version: string): string {
  return createHash('sha256').update(version).digest('base64url').slice(0, 12)
}

/** Reports whether occurrences since then may change the status that members chose. */
function dependsOnOccurrences({ status, occurrences }: FindingWork): boolean {
  return status === 'resolved' || (status === 'ignored' && occurrences !== undefined)
}

/** Reports whether a finding has occurred since it was resolved, so that its versions decide whether it is regressed. */
function hasReturned(work: FindingWork, since: Pick<Since, 'lastReceivedMs'> | undefined): boolean {
  return work.status === 'resolved' && since !== undefined && since.lastReceivedMs > Date.parse(work.statusAt ?? '')
}

/** Returns the versions in which a finding has occurred only after it was resolved, or undefined if it is not regressed. */
function regressedIn(work: FindingWork, since: Since | undefined): readonly string[] | undefined {
  if (since === undefined || !hasReturned(work, since)) return undefined
  const known = new Set(work.knownVersions)
  const later = since.versions.filter(version => !known.has(versionDigest(version)))
  // A finding without versions has none that could tell a later one, so any occurrence counts.
  return later.length > 0 || known.size === 0 ? later : undefined
}

/** Returns how often an ignored finding has still to occur, 0 if it is open again, or undefined if that does not matter. */
function occurrencesLeft(
  { occurrences, countedBefore = 0 }: FindingWork,
  since: Since | undefined,
): number | undefined {
  if (occurrences === undefined) return undefined
  return Math.max(occurrences - Math.max((since?.occurrenceCount ?? 0) - countedBefore, 0), 0)
}

/** Decides the status that a finding has at this time (docs/api/findings.md#finding-work). */
function standingOf(work: FindingWork | undefined, since: Since | undefined, nowMs: number): Standing {
  if (work === undefined) return { status: 'open' }
  const { statusAt, assignee, until, splitFrom } = work
  const shared = {
    ...(statusAt !== null && { statusChangedAt: statusAt }),
    ...(assignee !== null && { assignee }),
    ...(splitFrom !== undefined && { splitFrom }),
  }
  if (work.status === 'resolved') {
    const versions = regressedIn(work, since)
    return versions === undefined
      ? { status: 'resolved', ...shared }
      : { status: 'regressed', ...shared, regressedIn: versions.slice(0, REGRESSED_IN_MAX) }
  }
  const left = occurrencesLeft(work, since)
  const isOver = left === 0 || (until !== undefined && Date.parse(until) <= nowMs)
  if (work.status === 'open' || isOver) return { status: 'open', ...shared }
  return {
    status: 'ignored',
    ...shared,
    ...(until !== undefined && { ignoredUntil: until }),
    ...(left !== undefined && { occurrencesUntilOpen: left }),
  }
}
