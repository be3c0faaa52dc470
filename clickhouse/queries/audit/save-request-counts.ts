import { HOUR_S } from '../../../schemas/units.ts'
import type { Queues } from '../../../shared/queue/queues.ts'
import { takeRequestCounts } from '../../../shared/queue/request-counts.ts'
import { type ClickHouseClient, classifyClickHouseError, onFirstShard } from '../../client.ts'

/** How long a count stays in Redis. No request is accepted so long after it arrived. */
const KEPT_HOURS = 6

/**
 * Copies the counts of requests from Redis to `request_counts`, and removes old ones from Redis when they are copied. Safe to
 * repeat, and to run in several processes at once: the largest number counts, and numbers only grow.
 */
export async function saveRequestCounts(queues: Queues, clickhouse: ClickHouseClient, nowMs: number): Promise<void> {
  const keepFromHour = Math.floor(nowMs / 1_000 / HOUR_S) - KEPT_HOURS
  for await (const counts of takeRequestCounts(queues, keepFromHour)) {
    if (counts.length === 0) continue
    const values = counts.map(({ workspaceId, surfaceId, kind, outcome, hour, place, requests }) => ({
      workspace_id: workspaceId,
      surface_id: surfaceId,
      signal: kind,
      outcome,
      received_hour: hour * HOUR_S,
      place,
      requests,
    }))
    try {
      const settings = {
        async_insert: 0,
        wait_end_of_query: 1,
        // A repetition, which the table may ignore, still adds what a view has not.
        deduplicate_blocks_in_dependent_materialized_views: 1,
      } as const
      const table = 'request_counts'
      await onFirstShard(clickhouse, shard =>
        shard.insert({ table, values, format: 'JSONEachRow', clickhouse_settings: settings }),
      )
    } catch (error) {
      throw classifyClickHouseError(error)
    }
  }
}
