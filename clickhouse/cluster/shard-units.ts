import { TransientError } from '../../shared/runtime/errors.ts'
import type { ClickHouseClient } from '../client.ts'

/**
 * The part of a table on one shard, as the target of an insert. Records of batches and dead letters name it as
 * `spans@1/2`, the second of two shards, so that a repetition divides the rows in the same way while shards are added. Without
 * shards, and with one, it is the name of the table.
 */
interface ShardUnit {
  readonly table: string
  readonly shard: number
  /** Number of shards that the rows were divided between. */
  readonly shards: number
}

const UNIT = /^([^@]+)@(\d+)\/(\d+)$/

/** Returns the name of a part. */
export function unitName({ table, shard, shards }: ShardUnit): string {
  return shards <= 1 ? table : `${table}@${shard}/${shards}`
}

/** Reads the name of a part. */
export function readUnit(name: string): ShardUnit {
  const [, table = name, shard = '0', shards = '1'] = UNIT.exec(name) ?? []
  return { table, shard: Number(shard), shards: Number(shards) }
}

/** Returns the table of a part. */
export function tableOfUnit(name: string): string {
  const end = name.indexOf('@')
  return end === -1 ? name : name.slice(0, end)
}

/** Returns whether a part is among those that have the rows of a batch. A table without a shard is stored on all of them. */
export function isUnitStored(stored: readonly string[], name: string): boolean {
  return stored.includes(name) || stored.includes(tableOfUnit(name))
}

/**
 * Returns the number of shards that rows were divided between under these names, or undefined if they name no rows. Tables that
 * were stored whole may be beside parts: letters are replayed by other versions of the cluster.
 */
export function shardsOfUnits(names: readonly string[]): number | undefined {
  if (names.length === 0) return undefined
  return Math.max(...names.map(name => readUnit(name).shards))
}

/** Runs work on the shard of a part. Throws a TransientError if a part is of a cluster and this process has none. */
export async function onShardOfUnit<T>(
  client: ClickHouseClient,
  name: string,
  work: (shard: ClickHouseClient) => Promise<T>,
): Promise<T> {
  const { shard, shards } = readUnit(name)
  if (client.shards !== undefined) return client.shards.onShard(shard, work)
  if (shards > 1) throw new TransientError(`${name} is a part of a cluster: set CLICKHOUSE_CLUSTER`)
  return work(client)
}
