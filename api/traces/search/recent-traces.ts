import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { selectTraceCandidates } from '../../../clickhouse/queries/traces/search/select-trace-candidates.ts'
import { filterOfConditions, type SearchRange } from './search-filter.ts'

/** Traces whose spans name the attributes, values and names that are offered for a search. */
const RECENT_TRACES = 300

/** Returns the newest traces of a time, of one service or of all. */
export async function recentTraces(
  client: ClickHouseClient,
  { workspaceId, service, range, nowMs }: RecentSearch,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const filter = filterOfConditions(service === undefined ? [] : [{ of: 'service', value: service }], range)
  if (!filter.ok) return []
  const search = { workspaceId, filter: filter.value, after: undefined, traceIds: undefined }
  const { found } = await selectTraceCandidates(client, { ...search, limit: RECENT_TRACES, nowMs }, signal)
  return found.map(({ traceId }) => traceId)
}

/** Selects recent traces. */
interface RecentSearch {
  readonly workspaceId: string
  readonly service: string | undefined
  readonly range: SearchRange
  readonly nowMs: number
}
