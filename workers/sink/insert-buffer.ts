import { type ClickHouseClient, insertNative } from '../../clickhouse/client.ts'
import { onShardOfUnit, tableOfUnit } from '../../clickhouse/cluster/shard-units.ts'
import type { TableBuffer } from '../../clickhouse/native/table-buffer.ts'
import { blocksOf } from './row-batch.ts'
import { shardBlocks } from './shard-blocks.ts'

/** Dependencies of `insertBuffer`. */
interface InsertBufferDeps {
  readonly clickhouse: ClickHouseClient
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly onInserted?: (table: string) => void
}

/** Inserts rows that belong to no batch, each into its shard. A repeated call with the same token adds nothing. */
export async function insertBuffer(
  { clickhouse, onInserted, ...timing }: InsertBufferDeps,
  buffer: TableBuffer,
  deduplicationToken: string,
): Promise<void> {
  const shards = (await clickhouse.shards?.active()) ?? 1
  for (const { table: unit, columns, block } of shardBlocks(blocksOf([buffer]), shards, deduplicationToken)) {
    const table = tableOfUnit(unit)
    await onShardOfUnit(clickhouse, unit, shard =>
      insertNative(shard, { table, columns, block, deduplicationToken, ...timing }),
    )
    onInserted?.(table)
  }
}
