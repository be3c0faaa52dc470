import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { loadStandings as decideStandings, type MergedWorkspace, type Standing } from '../../../findings/standing.ts'
import type { Directory } from '../../../shared/directory/directory.ts'
import { queryDirectory } from '../../http/directory.ts'

/** Stores from which the status of findings is decided. */
export interface StandingDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingWork'>
  readonly now: () => number
}

/** Returns the standing of these findings, by id. Throws a TransientError when a store is unavailable. */
export function loadStandings(
  { clickhouse, directory, now }: StandingDeps,
  workspace: MergedWorkspace,
  findingIds: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, Standing>> {
  const findingWork = (workspaceId: string, ids: readonly string[]) =>
    queryDirectory(directory.findingWork(workspaceId, ids))
  return decideStandings({ clickhouse, findingWork, now }, workspace, findingIds, signal)
}
