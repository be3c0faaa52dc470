import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectRecurrences } from '../../../clickhouse/queries/findings/select-recurrences.ts'
import type { MergedWorkspace } from '../../../findings/standing.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { queryDirectory } from '../../http/directory.ts'
import { dayOf } from '../../http/format-time.ts'
import { loadStandings } from './load-standings.ts'

interface Deps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingWork' | 'findingMerges' | 'resolvedFindings'>
  readonly now: () => number
}

/** Findings that members have resolved. */
interface ResolvedFindings {
  readonly all: readonly string[]
  /** Those that are regressed, with the versions in which each occurred only afterwards. */
  readonly regressed: ReadonlyMap<string, readonly string[]>
}

/** Returns the resolved findings of a workspace. Only those that have occurred since are looked at one by one. */
export async function resolvedFindings(
  deps: Deps,
  workspace: MergedWorkspace,
  signal: AbortSignal,
): Promise<ResolvedFindings> {
  const { clickhouse, directory } = deps
  const resolved = await queryDirectory(directory.resolvedFindings(workspace.workspaceId))
  const asked = resolved.map(({ findingId, atMs }) => ({ findingId, day: dayOf(atMs) }))
  const resolvedAt = new Map(resolved.map(({ findingId, atMs }) => [findingId, atMs]))
  const recurrences = await selectRecurrences(clickhouse, workspace, asked, signal)
  const returned = recurrences.filter(({ id, lastReceivedMs }) => Number(lastReceivedMs) > (resolvedAt.get(id) ?? 0))
  const ids = returned.map(({ id }) => id)
  const standings = await loadStandings(deps, workspace, ids, signal)
  const regressed = ids.flatMap(id => {
    const standing = standings.get(id)
    return standing?.status === 'regressed' ? [[id, standing.regressedIn ?? []] as const] : []
  })
  return { all: resolved.map(({ findingId }) => findingId), regressed: new Map(regressed) }
}
