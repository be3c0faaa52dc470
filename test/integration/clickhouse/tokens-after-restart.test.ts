import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { type Services, startServices } from '../../support/services/services.ts'

const DATABASE = 'penstock'
const NOW_MS = Date.now()
const COMMON = {
  ...{ workspace_id: 'ws_1', surface_id: 'srf_1', received_at: NOW_MS, service_name: 'shop', session_id: 'session-1' },
  ...{ trace_id: 't'.repeat(16), span_id: 's'.repeat(8) },
}
/** A row of each table whose views count. */
const ROWS = {
  spans: { ...COMMON, name: 'GET /', start_time_unix_nano: `${NOW_MS}000000` },
  exceptions: {
    ...{ ...COMMON, finding_id: `fnd_${'a'.repeat(26)}`, occurred_at_unix_nano: `${NOW_MS}000000` },
    ...{ source: 'span_event', type: 'Error', message: 'no price' },
  },
}

let services: Services
let client: ClickHouseClient

const connect = () => createClickHouse({ url: services.clickhouseUrl, database: DATABASE })

beforeAll(async () => {
  services = await startServices()
  const migrator = createClickHouse({ url: services.clickhouseUrl })
  // Not the short way of other tests: a migration may change a view in a way that its final statement does not show.
  await migrate(migrator, { database: DATABASE, retentionDays: 30, logger: pino({ level: 'silent' }) })
  await migrator.close()
  client = connect()
})
afterAll(async () => {
  await client?.close()
  await services?.stop()
})

it('an insert that is repeated after the first restart of a new server adds nothing to any table with a window', async () => {
  for (const [table, row] of Object.entries(ROWS)) await insert(table, row)
  const before = await storedRows()
  expect(Object.keys(before)).toEqual(
    expect.arrayContaining(['exceptions', 'finding_buckets', 'findings', 'session_traces', 'spans']),
  )
  await client.close()
  await services.clickhouse.kill9()
  await services.clickhouse.restart()
  client = connect()
  for (const [table, row] of Object.entries(ROWS)) await insert(table, row)
  expect(await storedRows()).toEqual(before)
})

it('the rows of a part that a killed server has announced, but not published, are stored by the repeated insert', async () => {
  for (const [table, row] of Object.entries(ROWS)) await insert(table, row, 'second')
  const before = await storedRows()
  const directories = await lastParts(Object.keys(before))
  await client.close()
  await services.clickhouse.kill9()
  // The server renames the part after it has logged its token. This is what is left if it is killed between the two.
  for (const directory of directories) await rm(directory, { recursive: true })
  await services.clickhouse.restart()
  client = connect()
  for (const [table, row] of Object.entries(ROWS)) await insert(table, row, 'second')
  expect(await storedRows()).toEqual(before)
})

/** Returns the directory of the part that each table has logged last. */
async function lastParts(tables: string[]): Promise<string[]> {
  const result = await client.query({
    query: `SELECT arrayJoin(data_paths) AS path FROM system.tables WHERE database = currentDatabase() AND has({tables:Array(String)}, name)`,
    query_params: { tables },
    format: 'JSONEachRow',
  })
  const paths = (await result.json<{ path: string }>()).map(row => row.path)
  expect(paths).toHaveLength(tables.length)
  return Promise.all(
    paths.map(async path => {
      const log = await readFile(join(path, 'deduplication_logs', 'deduplication_log_1.txt'), 'utf8')
      const [, part] = (log.trimEnd().split('\n').at(-1) as string).split('\t')
      return join(path, part as string)
    }),
  )
}

async function insert(table: string, row: object, token = 'first'): Promise<void> {
  await client.command({ query: 'SYSTEM STOP MERGES' })
  await client.insert({
    table,
    values: [row],
    format: 'JSONEachRow',
    clickhouse_settings: {
      insert_deduplicate: 1,
      insert_deduplication_token: `${token}-${table}`,
      deduplicate_blocks_in_dependent_materialized_views: 1,
      async_insert: 0,
      wait_end_of_query: 1,
    },
  })
}

/** Returns the number of rows of each table that recognizes repeated inserts and has rows. */
async function storedRows(): Promise<Record<string, string>> {
  const result = await client.query({
    query: `SELECT table, sum(rows) AS rows FROM system.parts
            WHERE active AND database = currentDatabase() AND table IN (
              SELECT name FROM system.tables WHERE database = currentDatabase()
                AND toUInt64OrZero(extract(engine_full, 'non_replicated_deduplication_window = (\\\\d+)')) > 0)
            GROUP BY table ORDER BY table`,
    format: 'JSONEachRow',
  })
  const rows = await result.json<{ table: string; rows: string }>()
  return Object.fromEntries(rows.map(row => [row.table, row.rows]))
}
