import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { AS_SENT } from '../pipeline/period.ts'
import { MEASURE_SETTINGS } from './measured-time.ts'

/** Times in which surfaces were sent something. Unix seconds: whole hours, and whole minutes that are excluded. */
interface Activity {
  readonly workspaceId: string
  readonly surfaces: readonly string[] | undefined
  readonly fromSeconds: number
  readonly toSeconds: number
  /** Shorter times without anything are left out. */
  readonly gapSeconds: number
  readonly limit: number
}

/** When a surface was sent something. Unix seconds, beginnings of minutes; 0 if it was sent nothing in the time. */
export interface ActivityRow {
  readonly surfaceId: string
  /** Whether it was sent something before the time. */
  readonly wasSentBefore: 0 | 1
  readonly first: number
  readonly last: number
  /** The last minute before each gap, and the first minute after it. */
  readonly gaps: readonly (readonly [number, number])[]
}

/** Returns when the surfaces of a workspace were sent something, as far as it is stored. */
export function selectActivity(
  client: ClickHouseClient,
  activity: Activity,
  signal: AbortSignal,
): Promise<ActivityRow[]> {
  const chosen = activity.surfaces === undefined ? '' : 'AND surface_id IN {surfaces: Array(String)}'
  const from = 'fromUnixTimestamp({fromSeconds: UInt32})'
  return selectRows(client, {
    query: `
      SELECT surfaceId, max(isBefore) AS wasSentBefore, arraySort(groupUniqArrayArray(minutes)) AS minutesOfAll,
             if(empty(minutesOfAll), 0, minutesOfAll[1]) AS first, if(empty(minutesOfAll), 0, minutesOfAll[-1]) AS last,
             arrayFilter(gap -> gap.2 - gap.1 >= {gapSeconds: UInt32}, arrayZip(arrayPopBack(minutesOfAll), arrayPopFront(minutesOfAll))) AS gaps
      FROM (
        SELECT toString(surface_id) AS surfaceId, 0 AS isBefore, groupUniqArray(toUnixTimestamp(toStartOfMinute(received_at))) AS minutes
        FROM ingest_log
        WHERE workspace_id = {workspaceId: String} AND received_at >= ${from} AND received_at < fromUnixTimestamp({toSeconds: UInt32})
          AND ${AS_SENT} ${chosen}
        GROUP BY surfaceId
        UNION ALL
        SELECT toString(surface_id), 1, emptyArrayUInt32()
        FROM request_counts
        WHERE workspace_id = {workspaceId: String} AND received_hour < ${from} AND outcome = 'accepted' ${chosen}
        GROUP BY surface_id)
      GROUP BY surfaceId ORDER BY surfaceId LIMIT {limit: UInt32}`,
    params: { ...activity },
    signal,
    settings: MEASURE_SETTINGS,
  })
}
