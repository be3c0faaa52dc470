import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import { selectVersionsSince } from '../../../clickhouse/queries/findings/select-versions.ts'
import { type FindingWork, KNOWN_VERSIONS_MAX } from '../../../schemas/records/finding-work.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { dayOf } from '../../http/format-time.ts'
import { queryDirectory } from '../../http/query-directory.ts'
import { dependsOnOccurrences, hasReturned, type Since, type Standing, standingOf } from './standing.ts'

/** Stores from which the status of findings is decided. */
export interface StandingDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingWork'>
  readonly now: () => number
}

/**
 * Returns the standing of these findings, by id. Only those whose status depends on what has occurred since are looked up in
 * ClickHouse.
 */
export async function loadStandings(
  deps: StandingDeps,
  workspaceId: string,
  findingIds: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, Standing>> {
  const works = await queryDirectory(deps.directory.findingWork(workspaceId, findingIds))
  const known = works.filter(work => work !== undefined)
  const since = await loadSince(deps.clickhouse, workspaceId, known, signal)
  const nowMs = deps.now()
  return new Map(
    findingIds.map((findingId, i) => [findingId, standingOf(works[i], since.get(findingId), nowMs)] as const),
  )
}

/** Returns what has occurred of these findings since their status was chosen, by id, as far as the status depends on it. */
async function loadSince(
  client: ClickHouseClient,
  workspaceId: string,
  works: readonly FindingWork[],
  signal: AbortSignal,
): Promise<Map<string, Since>> {
  const asked = works.filter(dependsOnOccurrences)
  const sinceDay = ({ findingId, statusAt }: FindingWork) => ({ findingId, day: dayOf(statusAt ?? '') })
  const recurrences = await selectRecurrences(client, workspaceId, asked.map(sinceDay), signal)
  const counts = new Map(
    recurrences.map(({ id, lastReceivedMs, occurrenceCount }) => [
      id,
      { lastReceivedMs: Number(lastReceivedMs), occurrenceCount: Number(occurrenceCount) },
    ]),
  )
  const returned = asked.filter(work => hasReturned(work, counts.get(work.findingId)))
  // One more than a resolution remembers: if there are more, at least one is not known.
  const limit = KNOWN_VERSIONS_MAX + 1
  const versions = await selectVersionsSince(client, workspaceId, returned.map(sinceDay), limit, signal)
  return new Map([...counts].map(([id, count]) => [id, { ...count, versions: versions.get(id) ?? [] }]))
}
