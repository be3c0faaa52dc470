import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** A moment that all pages of a list of findings are read at. */
export interface FindingsSnapshot {
  /** Unix ms by the clock of ClickHouse. */
  readonly asOfMs: number
  /** The last block of `exceptions` at this moment. */
  readonly block: number
  /** In a cluster: the last block of each shard in the partition of the day of `asOfMs`; -1 if there is none. */
  readonly blocks?: readonly number[] | undefined
}

/** Returns the current snapshot. */
export async function selectFindingsSnapshot(client: ClickHouseClient, signal: AbortSignal): Promise<FindingsSnapshot> {
  if (client.shards !== undefined) return selectOfShards(client, signal)
  const [row] = await selectRows<{ asOfMs: string; block: string }>(client, {
    query: `SELECT toUnixTimestamp64Milli(now64(3)) AS asOfMs, max(max_block_number) AS block
            FROM system.parts WHERE database = currentDatabase() AND table = 'exceptions'`,
    params: {},
    signal,
    settings: { max_threads: 1 },
  })
  return { asOfMs: Number(row?.asOfMs), block: Number(row?.block) }
}

/**
 * Numbers of blocks grow by partition where tables are replicated, so those of the current day are taken. Arrivals of other days
 * are compared by the time at which they were stored. The clocks of the shards may differ by less than the time after which
 * arrivals are settled.
 */
async function selectOfShards(client: ClickHouseClient, signal: AbortSignal): Promise<FindingsSnapshot> {
  const isOfToday = `active AND database = {database: String} AND table = 'exceptions'
    AND partition_id = toString(toYYYYMMDD(now('UTC')))`
  const rows = await selectRows<{ shard: number; asOfMs: string; block: string }>(client, {
    query: `SELECT shardNum() AS shard, any(toUnixTimestamp64Milli(now64(3))) AS asOfMs,
              if(countIf(${isOfToday}) = 0, -1, maxIf(max_block_number, ${isOfToday})) AS block
            FROM cluster_parts GROUP BY shard ORDER BY shard`,
    params: { database: client.shards?.database },
    signal,
    settings: { max_threads: 1 },
  })
  return { asOfMs: Number(rows[0]?.asOfMs), block: 0, blocks: rows.map(({ block }) => Number(block)) }
}
