import { setTimeout as delay } from 'node:timers/promises'
import { type ClickHouseClient, quoteIdentifier } from '../../clickhouse/client.ts'
import { SHARD_MAPS_TABLE } from '../../clickhouse/cluster/shard-maps.ts'

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
       AND NOT startsWith(name, 'schema_migrations') AND name != '${SHARD_MAPS_TABLE}'`,
    { database },
  )
  for (const { name } of tables) {
    await client.command({ query: `TRUNCATE TABLE ${quoteIdentifier(database)}.${quoteIdentifier(name)}` })
  }
}

/** Waits until ClickHouse has merged nothing for a second, at most a minute. */
export async function settleMerges(client: ClickHouseClient): Promise<void> {
  const deadline = performance.now() + 60_000
  for (let quiet = 0; quiet < 5 && performance.now() < deadline; ) {
    const [row] = await select<{ n: number }>(client, 'SELECT count() AS n FROM system.merges')
    quiet = Number(row?.n) === 0 ? quiet + 1 : 0
    await delay(200)
  }
}

/** Returns the blocks written to MergeTree tables since the server started, and their rows. */
export async function writtenBlocks(client: ClickHouseClient): Promise<{ inserts: number; rows: number }> {
  const [inserts, rows] = await counters(client, ['MergeTreeDataWriterBlocks', 'MergeTreeDataWriterRows'])
  return { inserts, rows }
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
  return (await counters(client, ['NetworkReceiveBytes', 'NetworkSendBytes']))[0]
}

/** Returns counters of the server since it started. One that it has not counted is 0. */
async function counters(client: ClickHouseClient, names: [string, string]): Promise<[number, number]> {
  const events = await select<{ event: string; value: number }>(
    client,
    'SELECT event, value FROM system.events WHERE event IN {names: Array(String)}',
    { names },
  )
  const counted = (name: string) => Number(events.find(({ event }) => event === name)?.value ?? 0)
  return [counted(names[0]), counted(names[1])]
}
