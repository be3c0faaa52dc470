import type { ClickHouseClient } from '../../client.ts'
import { classifyClickHouseError, onEachShard } from '../../client.ts'
import { selectRows } from '../../select.ts'

/** Share of deleted rows from which on the parts of a day are written again. So a row is written at most a few times more. */
const DELETED_SHARE = 0.25

/**
 * Writes the parts of a day again, without their deleted rows, if these are a quarter of them or more. Days that are over
 * are merged no more, so their deleted rows would stay on the disk until the whole day expires.
 */
export async function reclaimDay(client: ClickHouseClient, day: TableDay, signal: AbortSignal): Promise<void> {
  await onEachShard(client, shard => reclaimOnShard(shard, day, signal))
}

interface TableDay {
  readonly table: string
  readonly day: string
}

/** A partition that has rows which are deleted and still on the disk. */
interface MaskedPartition {
  readonly shard: number
  readonly table: string
  readonly partition: string
}

/** Returns the partitions of these tables that have deleted rows, on all shards. */
export async function selectMasked(
  client: ClickHouseClient,
  tables: readonly string[],
  signal: AbortSignal,
): Promise<MaskedPartition[]> {
  const found = await onEachShard(client, async (shard, number) => {
    const rows = await selectRows<Omit<MaskedPartition, 'shard'>>(shard, {
      query: `SELECT DISTINCT table, partition_id AS partition FROM system.parts
              WHERE active AND has_lightweight_delete AND database = currentDatabase() AND table IN {tables: Array(String)}
              ORDER BY partition, table`,
      params: { tables },
      signal,
    })
    return rows.map(row => ({ ...row, shard: number }))
  })
  return found.flat()
}

/**
 * Writes those parts of a partition again that have deleted rows, without these rows. */
export async function rewriteMasked(
  client: ClickHouseClient,
  { shard: number, table, partition }: MaskedPartition,
  signal: AbortSignal,
): Promise<void> {
  const run = (shard: ClickHouseClient) => rewrite(shard, table, `ID '${partition}'`, signal)
  await (client.shards === undefined ? run(client) : client.shards.onShard(number, run))
}

async function reclaimOnShard(client: ClickHouseClient, { table, day }: TableDay, signal: AbortSignal): Promise<void> {
  const partitionId = day.replaceAll('-', '')
  const [found] = await selectRows<{ written: string; live: string }>(client, {
    query: `
      SELECT (SELECT sum(rows) FROM system.parts WHERE active AND database = currentDatabase()
                AND table = {table: String} AND partition_id = {partitionId: String}) AS written,
             (SELECT count() FROM ${table} WHERE _partition_id = {partitionId: String}) AS live`,
    params: { table, partitionId },
    signal,
  })
  const [written, live] = [Number(found?.written ?? 0), Number(found?.live ?? 0)]
  if (written - live < written * DELETED_SHARE || written === 0) return
  await rewrite(client, table, `'${day}'`, signal)
}

async function rewrite(client: ClickHouseClient, table: string, partition: string, signal: AbortSignal): Promise<void> {
  try {
    await client.command({
      query: `ALTER TABLE ${table} APPLY DELETED MASK IN PARTITION ${partition}`,
      clickhouse_settings: { mutations_sync: '2', wait_end_of_query: 1 },
      abort_signal: signal,
    })
  } catch (error) {
    throw classifyClickHouseError(error)
  }
}
