import { OVER_QUOTA } from '../../../shared/queue/request-counts.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { MEASURE_SETTINGS } from './measured-time.ts'

/** Kinds of events that need something which most workspaces do not have most of the time. */
export const SELDOM_KINDS = ['finding.spiking', 'pipeline.dead_letters', 'pipeline.quota'] as const
/** One of these kinds. */
export type SeldomKind = (typeof SELDOM_KINDS)[number]

/** Returns the workspaces of which each of these kinds can be, because of what arrived since a time in Unix ms. */
export async function selectActive(
  client: ClickHouseClient,
  sinceMs: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<SeldomKind, ReadonlySet<string>>> {
  const rows = await selectRows<{ kind: SeldomKind; ids: readonly string[] }>(client, {
    query: `
      SELECT 'finding.spiking' AS kind, groupUniqArray(toString(workspace_id)) AS ids
      FROM finding_arrivals WHERE arrived >= fromUnixTimestamp({since: UInt32})
      UNION ALL
      SELECT 'pipeline.dead_letters', groupUniqArray(toString(workspace_id))
      FROM dead_letters
      WHERE received_at >= fromUnixTimestamp({since: UInt32}) - INTERVAL 1 DAY AND indexed_at >= fromUnixTimestamp({since: UInt32})
        AND attempt = 0 AND outcome = 'dead'
      UNION ALL
      SELECT 'pipeline.quota', groupUniqArray(toString(workspace_id))
      FROM request_counts
      WHERE received_hour >= fromUnixTimestamp({since: UInt32}) - INTERVAL 1 HOUR AND outcome = '${OVER_QUOTA}'`,
    params: { since: Math.max(0, Math.floor(sinceMs / 1_000)) },
    signal,
    settings: MEASURE_SETTINGS,
  })
  return new Map(rows.map(({ kind, ids }) => [kind, new Set(ids)]))
}
