import type { ClickHouseSettings } from '@clickhouse/client'
import { type ClickHouseClient, quoteIdentifier } from '../../../clickhouse/client.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { meterProcesses } from '../../measure/process-meter.ts'
import { BENCH_DATABASE, type BenchClickHouse } from '../../services/start-stores.ts'
import type { Layout } from './layouts.ts'
import { BLOCK_ROWS } from './search-blocks.ts'

/** CPU seconds of ClickHouse for a million rows, and bytes of a row, of one round. */
export interface LayoutCost {
  readonly insert: number
  /** One merge of all inserts into one part. */
  readonly merge: number
  readonly bytesInserted: number
  readonly bytesMerged: number
}

/** Result of a search that was repeated with several values. */
export interface SearchCost {
  readonly ms: readonly number[]
  /** CPU of ClickHouse, rows and bytes read, a search. */
  readonly cpuMs: number
  readonly rowsRead: number
  readonly bytesRead: number
  /** Rows of the answers, to see that layouts find the same. */
  readonly found: number
}

/** A table in one layout. */
export interface LaidOut {
  readonly layout: Layout
  readonly table: string
  /** Inserts a block as rows that were received `daysAgo`. Returns the CPU seconds. */
  insert(block: number, daysAgo: number): Promise<number>
  /** Merges the rows of a day into one part. Returns the CPU seconds. */
  merge(daysAgo: number): Promise<number>
  bytesARow(daysAgo: number): Promise<number>
  search(queries: readonly string[], times: number): Promise<SearchCost>
}

/** One block is one part, and is inserted again each round. */
const INSERT_SETTINGS: ClickHouseSettings = {
  insert_deduplicate: 0,
  wait_end_of_query: 1,
  max_threads: 1,
  max_insert_threads: '1',
  max_block_size: String(2 * BLOCK_ROWS),
  // As in the worker's inserts.
  exclude_materialize_skip_indexes_on_insert: 'by_attribute',
}

const day = (daysAgo: number) => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10)

/** Creates a table in a layout, with files of its blocks. Only `merge` merges it. */
export async function layOut(
  { client, pid }: BenchClickHouse,
  layout: Layout,
  number: number,
  blocks: readonly string[],
): Promise<LaidOut> {
  const table = `${layout.table}_${number}`
  const command = (query: string, settings: ClickHouseSettings = {}) =>
    client.command({
      query: query.replaceAll('{table}', table),
      clickhouse_settings: { wait_end_of_query: 1, ...settings },
    })
  await command(`CREATE TABLE {table} AS ${layout.table}`)
  for (const change of layout.changes ?? []) await command(change)
  await command('SYSTEM STOP MERGES {table}')
  const files = layout.block === undefined ? blocks : await convertBlocks(client, layout.block, table, blocks)
  const columns = (await columnsOf(client, files[0] as string)).map(quoteIdentifier).join(', ')
  const meter = meterProcesses({ ClickHouse: pid })
  async function metered(work: () => Promise<unknown>): Promise<number> {
    meter.begin()
    await work()
    return meter.end().ClickHouse?.cpuSeconds ?? 0
  }

  return {
    layout,
    table,
    insert: (block, daysAgo) =>
      metered(() =>
        command(
          `INSERT INTO {table} (${columns})
           SELECT * REPLACE (received_at - INTERVAL ${daysAgo} DAY AS received_at) FROM file('${files[block]}', 'Native')`,
          INSERT_SETTINGS,
        ),
      ),
    async merge(daysAgo) {
      await command('SYSTEM START MERGES {table}')
      const seconds = await metered(() => command(`OPTIMIZE TABLE {table} PARTITION '${day(daysAgo)}' FINAL`))
      await command('SYSTEM STOP MERGES {table}')
      return seconds
    },
    async bytesARow(daysAgo) {
      const query = `SELECT sum(bytes_on_disk) / sum(rows) AS bytes FROM system.parts
        WHERE active AND database = '${BENCH_DATABASE}' AND table = '${table}' AND partition = '${day(daysAgo)}'`
      const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ bytes: number }>()
      return Number(row?.bytes)
    },
    async search(queries, times) {
      const ms: number[] = []
      const sum = { rowsRead: 0, bytesRead: 0, found: 0 }
      const seconds = await metered(async () => {
        for (let i = 0; i < times; i++) {
          const query = (queries[i % queries.length] as string).replaceAll('{table}', table)
          const startedAt = performance.now()
          const answer = await (
            await client.query({ query, format: 'JSON', clickhouse_settings: { use_query_condition_cache: 0 } })
          ).json()
          ms.push(performance.now() - startedAt)
          sum.rowsRead += answer.statistics?.rows_read ?? 0
          sum.bytesRead += answer.statistics?.bytes_read ?? 0
          sum.found += answer.rows ?? 0
        }
      })
      const each = (total: number) => total / times
      return {
        ms,
        cpuMs: each(seconds * 1_000),
        rowsRead: each(sum.rowsRead),
        bytesRead: each(sum.bytesRead),
        found: each(sum.found),
      }
    },
  }
}

/** Writes blocks with other columns, so that only inserting them is measured. */
async function convertBlocks(
  client: ClickHouseClient,
  columns: string,
  table: string,
  blocks: readonly string[],
): Promise<string[]> {
  const files: string[] = []
  for (const [i, block] of blocks.entries()) {
    const file = `${block}.${table}`
    await client.command({
      query: `INSERT INTO FUNCTION file('${file}', 'Native') SELECT ${columns} FROM file('${block}', 'Native')`,
      clickhouse_settings: { max_threads: 1, max_block_size: String(2 * BLOCK_ROWS), wait_end_of_query: 1 },
    })
    files[i] = file
  }
  return files
}

async function columnsOf(client: ClickHouseClient, file: string): Promise<string[]> {
  const query = `DESCRIBE file('${file}', 'Native')`
  return (await (await client.query({ query, format: 'JSONEachRow' })).json<{ name: string }>()).map(({ name }) => name)
}
