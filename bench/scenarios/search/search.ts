import { join } from 'node:path'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { type BenchClickHouse, startBenchClickHouse } from '../../services/start-stores.ts'
import { rotated } from '../../support/rounds.ts'
import type { Row, Scenario, ScenarioContext, ScenarioResult } from '../../support/scenario.ts'
import { AS_STORED, type Layout, logLayouts, pointLayouts, spanLayouts } from './layouts.ts'
import { type LaidOut, type LayoutCost, layOut } from './measure-layout.ts'
import { BLOCK_ROWS, type SearchedTable, writeSearchBlocks } from './search-blocks.ts'

const MILLION = 1_000_000
const DAY_NS = 86_400_000_000_000n

interface Size {
  readonly blocks: number
  /** Each round stores the blocks once more, as another day. */
  readonly rounds: number
  readonly searches: number
  /** Days, and parts of a day, of the largest table. */
  readonly days: number
  readonly partsPerDay: number
}

const FULL: Size = { blocks: 10, rounds: 3, searches: 9, days: 7, partsPerDay: 14 }
const QUICK: Size = { blocks: 1, rounds: 1, searches: 3, days: 2, partsPerDay: 2 }

/** Measures layouts and indexes of attributes, words and labels. */
export const scenario: Scenario = {
  name: 'search',
  question:
    'What do layouts and indexes of spans, log records and data points cost ClickHouse, and how fast is a search by attribute, word or label?',
  run: context => run(context, context.quick ? QUICK : FULL),
}

async function run(context: ScenarioContext, size: Size): Promise<ScenarioResult> {
  const clickhouse = await startBenchClickHouse(context)
  const rows: Row[] = []
  for (const table of ['spans', 'logs', 'metric_points'] as const) {
    const beganAt = (BigInt(Date.now()) * 1_000_000n) / DAY_NS
    const blocks = await writeSearchBlocks(join(context.dir, 'blocks'), table, size.blocks, beganAt * DAY_NS)
    context.progress(`${table}: ${(size.blocks * BLOCK_ROWS).toLocaleString('en')} rows are written`)
    const layouts = await layoutsOf(clickhouse.client, table, blocks, beganAt * DAY_NS)
    rows.push(...(await measureTable(context, clickhouse, layouts, blocks, size)))
  }
  return {
    rows,
    method: `each layout in turn, ${size.rounds} rounds of ${size.blocks} inserts of ${BLOCK_ROWS.toLocaleString('en')} rows and one merge of them, then ${size.searches} searches of each kind over all rounds`,
    notes: [
      'CPU seconds of ClickHouse for a million rows. In the first minutes a row is merged 0.8 times, later two or three times.',
      'An index of attributes is built by merges and not by inserts, in all layouts.',
      'Blocks are read from files, so that parsing a request is not part of it. The pages of all tables are in memory.',
    ],
    facts: { ClickHouse: clickhouse.version },
  }
}

async function layoutsOf(
  client: ClickHouseClient,
  table: SearchedTable,
  blocks: readonly string[],
  beganAt: bigint,
): Promise<Layout[]> {
  const source = `file('${(blocks[0] as string).replace('-0.', '-*.')}', 'Native')`
  const select = async (value: string, having = '') =>
    (
      await (
        await client.query({
          query: `SELECT toString(${value}) AS text FROM ${source} WHERE text != '' GROUP BY text ${having}
                  ORDER BY cityHash64(text) LIMIT 9`,
          format: 'JSONEachRow',
        })
      ).json<{ text: string }>()
    ).map(({ text }) => text)
  const inOneOf100k = `HAVING count() BETWEEN ${blocks.length} AND ${blocks.length + 1}`
  const users = () => select("attributes['enduser.id']", inOneOf100k)
  switch (table) {
    case 'spans':
      return spanLayouts(await users())
    case 'logs':
      return logLayouts(await select("extract(body, 'order_id=([0-9a-f]+)')"), await users())
    case 'metric_points':
      return pointLayouts(await select("if(metric_name = 'http.server.requests.1', toString(series_id), '')"), beganAt)
  }
}

async function measureTable(
  context: ScenarioContext,
  clickhouse: BenchClickHouse,
  layouts: readonly Layout[],
  blocks: readonly string[],
  size: Size,
): Promise<Row[]> {
  const tables: LaidOut[] = []
  for (const [i, layout] of layouts.entries()) tables.push(await layOut(clickhouse, layout, i, blocks))
  const costs = new Map(tables.map(table => [table, [] as LayoutCost[]]))
  for (let round = 0; round < size.rounds; round++) {
    for (const [table, cost] of await storeOnce(tables, blocks.length, round)) costs.get(table)?.push(cost)
    context.progress(`${layouts[0]?.table}: round ${round + 1}/${size.rounds} is stored`)
  }
  const rows: Row[] = []
  for (const [table, rounds] of costs) {
    rows.push(...costRows(table.layout, rounds))
    for (const [what, queries] of Object.entries(table.layout.searches)) {
      rows.push(await searchRow(table, what, queries, size.searches))
    }
    context.progress(`${table.layout.table}, ${table.layout.name}: searched`)
  }
  const stored = tables.find(({ layout }) => layout.name === AS_STORED)
  if (stored?.layout.table === 'spans') rows.push(...(await measureLarge(clickhouse.client, stored, size)))
  for (const { table } of tables) await clickhouse.client.command({ query: `TRUNCATE TABLE ${table}` })
  return rows
}

/** Stores the blocks once in every table. Tables take turns block by block, so that a slow moment affects all of them. */
async function storeOnce(tables: readonly LaidOut[], blocks: number, round: number): Promise<Map<LaidOut, LayoutCost>> {
  const perMillion = MILLION / (blocks * BLOCK_ROWS)
  const inserted = new Map<LaidOut, number>()
  for (let block = 0; block < blocks; block++) {
    for (const table of rotated(tables, block + round)) {
      inserted.set(table, (inserted.get(table) ?? 0) + (await table.insert(block, round)))
    }
  }
  const costs = new Map<LaidOut, LayoutCost>()
  for (const table of rotated(tables, round)) {
    const bytesInserted = await table.bytesARow(round)
    const merge = (await table.merge(round)) * perMillion
    const insert = (inserted.get(table) ?? 0) * perMillion
    costs.set(table, { insert, merge, bytesInserted, bytesMerged: await table.bytesARow(round) })
  }
  return costs
}

function costRows({ table, name }: Layout, rounds: readonly LayoutCost[]): Row[] {
  const row = (what: string, unit: string, of: (cost: LayoutCost) => number): Row => ({
    name: `${table}, ${name}: ${what}`,
    unit,
    samples: rounds.map(of),
  })
  return [
    row('insert', 'CPU s a million', ({ insert }) => insert),
    row('merge', 'CPU s a million', ({ merge }) => merge),
    row('disk, inserted', 'bytes a row', ({ bytesInserted }) => bytesInserted),
    row('disk, merged', 'bytes a row', ({ bytesMerged }) => bytesMerged),
  ]
}

async function searchRow(
  table: LaidOut,
  what: string,
  queries: readonly string[],
  times: number,
  where = '',
): Promise<Row> {
  const { ms, cpuMs, rowsRead, bytesRead, found } = await table.search(queries, times)
  return {
    name: `${table.layout.table}, ${table.layout.name}: ${what}${where}`,
    unit: 'ms',
    samples: ms,
    details: {
      'CPU ms': cpuMs.toFixed(0),
      'rows read': Math.round(rowsRead).toLocaleString('en'),
      'MB read': (bytesRead / MILLION).toFixed(1),
      found: found.toFixed(1),
    },
  }
}

/**
 * Searches a hundred million spans, and those of one day, which is as far as a page of rare spans has to read. They are the
 * first round again and again, by links to its files.
 */
async function measureLarge(client: ClickHouseClient, stored: LaidOut, size: Size): Promise<Row[]> {
  const large = `${stored.table}_large`
  await client.command({ query: `CREATE TABLE ${large} AS ${stored.table}` })
  await client.command({ query: `SYSTEM STOP MERGES ${large}` })
  const [first] = await (
    await client.query({
      query: `SELECT max(partition) AS day FROM system.parts WHERE active AND table = '${stored.table}'`,
      format: 'JSONEachRow',
    })
  ).json<{ day: string }>()
  const rows: Row[] = []
  let parts = 0
  for (const [what, days] of [
    ['one day', 1],
    ['all days', size.days],
  ] as const) {
    for (; parts < days * size.partsPerDay; parts++) {
      await client.command({ query: `ALTER TABLE ${large} ATTACH PARTITION '${first?.day}' FROM ${stored.table}` })
    }
    const millions = `${(parts * size.blocks * BLOCK_ROWS) / MILLION} million`
    for (const search of ['rare value', 'missing value']) {
      const queries = (stored.layout.searches[search] ?? []).map(query => query.replaceAll('{table}', large))
      const row = await searchRow(stored, search, queries, 2 * size.searches, `, ${what}`)
      rows.push({ ...row, details: { spans: millions, ...row.details } })
    }
  }
  return rows
}
