import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, insertNative } from '../../../clickhouse/client.ts'
import { selectFindingVariants } from '../../../clickhouse/queries/attributes/membership.ts'
import { selectFinding } from '../../../clickhouse/queries/findings/select-finding.ts'
import { FindingMovesTable, rankOf } from '../../../clickhouse/tables/finding-moves-table.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { blocksOf } from '../../../workers/sink/row-batch.ts'
import { createDatabase } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `finding_moves_${process.pid}`
const TODAY = Math.floor(Date.now() / DAY_MS)
const idOf = (letter: string) => `fnd_${letter.repeat(26)}`
const variantOf = (digit: string) => digit.repeat(32)

let client: ClickHouseClient

beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

/** Stores occurrences of a variant, one on each of these days. */
async function occur(digit: string, letter: string, days: readonly number[]): Promise<void> {
  await client.command({
    query: `
      INSERT INTO exceptions (workspace_id, surface_id, received_at, variant_id, finding_id, service_name, service_version)
      SELECT 'ws_1', 'srf_1', fromUnixTimestamp64Milli(toInt64(arrayJoin([${days.map(day => day * DAY_MS + 1)}]))),
             unhex('${variantOf(digit)}'), '${idOf(letter)}', 'shop', '${digit}.0'`,
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
  })
}

async function move(digit: string, letter: string, sequence: number): Promise<void> {
  const table = new FindingMovesTable()
  const to = { findingId: idOf(letter), rank: rankOf(1, sequence * 1_000_000) }
  table.append({ workspaceId: 'ws_1', variantId: variantOf(digit), ...to })
  for (const { table: name, columns, block } of blocksOf([table.buffer])) {
    await insertNative(client, { table: name, columns, block, deduplicationToken: randomUUID(), timeoutMs: 5_000 })
  }
}

/** Returns the counts of findings by day. Their variants are bound, and looked for in the query: both are the same rows. */
async function countsOf(letters: string): Promise<unknown[]> {
  const read = async (letter: string) => {
    const key = { workspaceId: 'ws_1', findingIds: [idOf(letter)] }
    const { variantIds } = await selectFindingVariants(client, key, AbortSignal.timeout(5_000))
    const found = await Promise.all(
      [variantIds, undefined].map(ids =>
        selectFinding(client, { ...key, variantIds: ids }, AbortSignal.timeout(5_000)),
      ),
    )
    expect(found[0]).toEqual(found[1])
    return found[0]?.days[1].map(Number)
  }
  return Promise.all([...letters].map(read))
}

const currentOf = async (letter: string) => {
  const key = { workspaceId: 'ws_1', findingIds: [idOf(letter)] }
  return (await selectFindingVariants(client, key, AbortSignal.timeout(5_000))).current?.[4]
}

it('a variant moves with its counts of every day, to the finding of the highest rank, however rows are merged', async () => {
  await occur('1', 'a', [TODAY - 1, TODAY, TODAY])
  await occur('2', 'a', [TODAY])
  await occur('3', 'b', [TODAY])
  expect(await countsOf('abc')).toEqual([[1, 3], [1], undefined])
  await move('1', 'c', 7)
  for (let times = 0; times < 2; times++) await move('3', 'c', 7)
  // A worker that knew older maps only is the last to store.
  await move('1', 'd', 6)
  await occur('1', 'a', [TODAY])
  for (let merged = 0; merged < 2; merged++) {
    expect(await countsOf('abcd')).toEqual([[1], undefined, [1, 4], undefined])
    expect(await Promise.all([...'bcd'].map(currentOf))).toEqual(['c', 'c', 'c'])
    for (const table of ['findings', 'finding_variants'])
      await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` })
  }
})

it('an emptied finding leads to the one of the variant that occurred last, whichever moved last', async () => {
  await occur('5', 'e', [TODAY])
  await occur('6', 'e', [TODAY])
  await move('6', 'g', 7)
  await move('5', 'f', 7)
  expect(await currentOf('e')).toBe('g')
})
