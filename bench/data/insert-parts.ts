import type { ClickHouseSettings } from '@clickhouse/client'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { BENCH_DATABASE } from '../services/start-stores.ts'

/** Concurrent inserts. Each needs a core, and 0.4 GB of memory for a part of the largest size. */
const INSERTS_AT_ONCE = 2
export const TIMEOUT_MS = 300_000

/** Settings of an insert all of whose rows of a partition form one part. */
export const PART_SETTINGS: ClickHouseSettings = {
  wait_end_of_query: 1,
  max_threads: 1,
  max_insert_threads: '1',
  min_insert_block_size_rows: '1000000000',
  min_insert_block_size_bytes: '0',
  insert_deduplicate: 0,
}

/** Runs work with a client that waits as long as the largest insert takes. */
export async function withPatientClient<T>(url: string, work: (client: ClickHouseClient) => Promise<T>): Promise<T> {
  const client = createClickHouse({ url, database: BENCH_DATABASE, requestTimeoutMs: TIMEOUT_MS })
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

async function runStatement(client: ClickHouseClient, query: string): Promise<void> {
  const clickhouse_settings: ClickHouseSettings = { wait_end_of_query: 1, max_threads: 1 }
  await client.command({ query, clickhouse_settings, abort_signal: AbortSignal.timeout(TIMEOUT_MS) })
}

/** Does works, a few at once. */
async function doAll(works: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...works]
  await Promise.all(
    Array.from({ length: INSERTS_AT_ONCE }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next()
    }),
  )
}

/**
 * Empties a table and fills it with the parts that the inserts make, as merges would leave them: they are wide, have all
 * indexes, and stay as they are, because merges of the table are stopped.
 */
export async function fillWithParts(
  client: ClickHouseClient,
  table: string,
  inserts: readonly (() => Promise<void>)[],
): Promise<void> {
  await runStatement(client, `SYSTEM STOP MERGES ${table}`)
  await runStatement(client, `TRUNCATE TABLE ${table}`)
  // Merged parts are wide if they are large enough, so these inserted parts are wide too.
  await runStatement(client, `ALTER TABLE ${table} MODIFY SETTING min_level_for_wide_part = 0`)
  await doAll(inserts)
  await runStatement(client, `ALTER TABLE ${table} MODIFY SETTING min_level_for_wide_part = 1`)
}

/**
 * Merges the parts of each day before yesterday into one, as ClickHouse does when they are a day old. Returns the
 * parts of all days. Other days may have fewer afterwards.
 */
export async function mergePastDays(client: ClickHouseClient, table: string): Promise<number> {
  const result = await client.query({
    query: `SELECT DISTINCT partition_id AS id FROM system.parts
            WHERE active AND database = {database: String} AND table = {table: String} AND toDate(partition) < today() - 1`,
    query_params: { database: BENCH_DATABASE, table },
    format: 'JSONEachRow',
  })
  const days = await result.json<{ id: string }>()
  await runStatement(client, `SYSTEM START MERGES ${table}`)
  await doAll(
    days.map(
      ({ id }) =>
        () =>
          runStatement(client, `OPTIMIZE TABLE ${table} PARTITION ID '${id}' FINAL`),
    ),
  )
  await runStatement(client, `SYSTEM STOP MERGES ${table}`)
  return (await storedRows(client, table)).parts
}

/** State of a table. */
export interface StoredRows {
  readonly rows: number
  readonly parts: number
  readonly bytesPerRow: number
}

/** Returns the active parts of a table. */
export async function storedRows(client: ClickHouseClient, table: string): Promise<StoredRows> {
  const result = await client.query({
    query: `SELECT sum(rows) AS rows, count() AS parts, sum(bytes_on_disk) / rows AS bytesPerRow
            FROM system.parts WHERE active AND database = {database: String} AND table = {table: String}`,
    query_params: { database: BENCH_DATABASE, table },
    format: 'JSONEachRow',
  })
  const [row] = await result.json<Record<keyof StoredRows, string>>()
  return { rows: Number(row?.rows), parts: Number(row?.parts), bytesPerRow: Number(row?.bytesPerRow) }
}
