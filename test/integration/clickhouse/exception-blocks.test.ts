import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createDatabase, insertExceptions } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `exception_blocks_${process.pid}`

let client: ClickHouseClient

beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

it('each insert of exceptions has a larger block number, which merges leave as it is', async () => {
  const blocks = async () => {
    const query = 'SELECT message, _block_number FROM exceptions ORDER BY message'
    return (await client.query({ query, format: 'JSONCompactEachRow' })).json<[string, string]>()
  }
  const traceId = 'a'.repeat(32)
  for (const message of ['1', '2', '3']) {
    await insertExceptions(client, [{ findingId: `fnd_${'a'.repeat(26)}`, traceId, message }])
  }
  const before = await blocks()
  const numbers = before.map(([, block]) => Number(block))
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  await client.command({ query: 'OPTIMIZE TABLE exceptions FINAL' })
  expect(await blocks()).toEqual(before)
})
