import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import type { FindingsFilter } from '../../../clickhouse/queries/findings/findings-filter.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import type { FindingStatus } from '../../../schemas/http/findings/work.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { queryDirectory } from '../../http/directory.ts'
import { dayOf } from '../../http/format-time.ts'
import { loadStandings } from './standing.ts'

/** Stores from which the findings of a status are chosen. */
export interface ChooseDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingWork' | 'resolvedFindings' | 'ignoredFindings' | 'countedFindings'>
  readonly now: () => number
}

type Chosen = NonNullable<FindingsFilter['chosen']>

/**
 * Returns which findings of a workspace have a status: those of a set, or for `open` all but those of a set. The sets are those
 * of the directory, and have at most FINDING_WORK_MAX findings. Only resolved findings that have occurred since, and ignored ones
 * that are open again after a number of occurrences, are looked at one by one.
 */
export async function chooseFindings(
  deps: ChooseDeps,
  workspaceId: string,
  status: FindingStatus,
  signal: AbortSignal,
): Promise<Chosen> {
  if (status === 'resolved' || status === 'regressed') {
    const { all, regressed } = await resolvedFindings(deps, workspaceId, signal)
    if (status === 'regressed') return { are: 'only', findingIds: [...regressed] }
    return { are: 'only', findingIds: all.filter(id => !regressed.has(id)) }
  }
  const ignored = await ignoredFindings(deps, workspaceId, signal)
  if (status === 'ignored') return { are: 'only', findingIds: ignored }
  const resolved = await queryDirectory(deps.directory.resolvedFindings(workspaceId))
  return { are: 'not', findingIds: [...ignored, ...resolved.map(({ findingId }) => findingId)] }
}

async function resolvedFindings(deps: ChooseDeps, workspaceId: string, signal: AbortSignal) {
  const { clickhouse, directory } = deps
  const resolved = await queryDirectory(directory.resolvedFindings(workspaceId))
  const asked = resolved.map(({ findingId, atMs }) => ({ findingId, day: dayOf(atMs) }))
  const resolvedAt = new Map(resolved.map(({ findingId, atMs }) => [findingId, atMs]))
  const recurrences = await selectRecurrences(clickhouse, workspaceId, asked, signal)
  const returned = recurrences.filter(({ id, lastReceivedMs }) => Number(lastReceivedMs) > (resolvedAt.get(id) ?? 0))
  const ids = returned.map(({ id }) => id)
  const standings = await loadStandings(deps, workspaceId, ids, signal)
  const regressed = new Set(ids.filter(id => standings.get(id)?.status === 'regressed'))
  return { all: resolved.map(({ findingId }) => findingId), regressed }
}

async function ignoredFindings(deps: ChooseDeps, workspaceId: string, signal: AbortSignal): Promise<string[]> {
  const ignored = await queryDirectory(deps.directory.ignoredFindings(workspaceId, deps.now()))
  const counted = await queryDirectory(deps.directory.countedFindings(workspaceId))
  const standings = await loadStandings(deps, workspaceId, counted, signal)
  return ignored.filter(id => standings.get(id)?.status !== 'open')
}
