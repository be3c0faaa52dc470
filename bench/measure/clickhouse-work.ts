import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { SHARD_MAPS_TABLE } from '../../clickhouse/cluster/shard-maps.ts'
import { quoteIdentifier } from '../../clickhouse/quote.ts'

async function select<T>(
  client: ClickHouseClient,
  query: string,
  params: Record<string, string | string[]> = {},
): Promise<T[]> {
  return (await client.query({ query, query_params: params, format: 'JSONEachRow' })).json<T>()
}

/** Empties every table that stores parts, except those that migrations write. */
export async function truncateTables(client: ClickHouseClient, database: string): Promise<void> {
  const tables = await select<{ name: string }>(
    client,
    `SELECT name FROM system.tables
     WHERE database = {database: String} AND engine LIKE '%MergeTree'
       AND NOT startsWith(name, 'schema_migrations') AND name NOT IN ('${SHARD_MAPS_TABLE}', 'installation')`,
    { database },
  )
  for (const { name } of tables) {
    await client.command({ query: `TRUNCATE TABLE ${quoteIdentifier(database)}.${quoteIdentifier(name)}` })
  }
}

/** Longer than the time between two inserts of a queue that is nearly empty, such as that of exceptions. */
const QUIET_MS = 2_000

/**
 * Waits until ClickHouse has merged and inserted nothing for some seconds, at most until the deadline. Returns whether merges
 * are at rest.
 */
export async function settleMerges(client: ClickHouseClient, deadlineMs = 60_000): Promise<boolean> {
  const deadline = performance.now() + deadlineMs
  let quietSince = performance.now()
  for (let lastRows = -1; performance.now() < deadline; ) {
    const [row] = await select<{ n: number }>(client, 'SELECT count() AS n FROM system.merges')
    const { rows } = await writtenBlocks(client)
    if (Number(row?.n) > 0 || rows !== lastRows) quietSince = performance.now()
    else if (performance.now() - quietSince >= QUIET_MS) return true
    lastRows = rows
    await delay(200)
  }
  return false
}

/** Returns the blocks written to MergeTree tables since the server started, their rows, and the rows that merges wrote again. */
export async function writtenBlocks(client: ClickHouseClient) {
  const counted = await countersOf(client)
  return {
    inserts: counted('MergeTreeDataWriterBlocks'),
    rows: counted('MergeTreeDataWriterRows'),
    merged: counted('MergedRows'),
  }
}

/** Returns the bytes of all active parts of a database on disk. */
export async function bytesOnDisk(client: ClickHouseClient, database: string): Promise<number> {
  const [row] = await select<{ bytes: number }>(
    client,
    'SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND database = {database: String}',
    { database },
  )
  return Number(row?.bytes)
}

/** Returns the bytes that the server has received since it started. */
export async function receivedBytes(client: ClickHouseClient): Promise<number> {
  return (await countersOf(client))('NetworkReceiveBytes')
}

/** Reads the counters of the server since it started. One that it has not counted is 0. */
async function countersOf(client: ClickHouseClient): Promise<(name: string) => number> {
  const events = await select<{ event: string; value: number }>(client, 'SELECT event, value FROM system.events')
  return name => Number(events.find(({ event }) => event === name)?.value ?? 0)
}
