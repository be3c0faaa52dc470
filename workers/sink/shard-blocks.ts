import { shardsOfUnits, unitName } from '../../clickhouse/cluster/shard-units.ts'
import { shardsOfRows } from '../../clickhouse/cluster/shards-of-rows.ts'
import { rangesOf } from '../../clickhouse/native/row-ranges.ts'
import type { BatchRecord } from '../queue/payloads/batch-record.ts'
import type { TableBlock } from './row-batch.ts'

/**
 * Returns how many shards the rows of a batch were divided between when it was recorded, or undefined if nothing was inserted.
 * A repetition divides them in the same way, whatever shards were added since.
 */
export function recordedShards({
  formed,
  storedTables,
}: Pick<BatchRecord, 'formed' | 'storedTables'>): number | undefined {
  return shardsOfUnits([...storedTables, ...Object.keys(formed?.tables ?? {})])
}

/**
 * Divides blocks by shard. The parts are inserted one after the other, beginning with another shard in each batch, so that few
 * batches wait for the same shard. Their rows are copied when they are read, so that one part at a time is in memory.
 */
export function shardBlocks(blocks: readonly TableBlock[], shards: number, batchId: string): readonly TableBlock[] {
  if (shards <= 1) return blocks
  const first = firstShard(batchId, shards)
  return blocks.flatMap(({ table, columns, buffer }) => {
    if (buffer === undefined) throw new TypeError(`the rows of ${table} cannot be divided`)
    const shardOf = shardsOfRows(buffer, shards)
    return Array.from({ length: shards }, (_, i) => (first + i) % shards).flatMap(shard => {
      const ranges = rangesOf(shardOf, shard)
      if (ranges.count === 0) return []
      const name = unitName({ table, shard, shards })
      return [
        {
          table: name,
          columns,
          rows: ranges.count,
          get block() {
            return buffer.blockOf(ranges)
          },
        },
      ]
    })
  })
}

/** Derives from the id, so that repetitions have the same order. `findLanded` rests on it. */
function firstShard(batchId: string, shards: number): number {
  let sum = 0
  for (let i = 0; i < batchId.length; i++) sum = (sum * 31 + batchId.charCodeAt(i)) % 65_536
  return sum % shards
}
