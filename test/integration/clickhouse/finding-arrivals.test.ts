import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createDatabase } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const DATABASE = `finding_arrivals_${process.pid}`

let client: ClickHouseClient

beforeAll(async () => {
  client = await createDatabase(sharedServices().clickhouseUrl, DATABASE)
})
afterAll(async () => {
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
})

it('the table of arrivals keeps a row for each insert of a finding, which merges leave as it is, for two days', async () => {
  const select = async (query: string) => (await client.query({ query, format: 'JSONCompactEachRow' })).json<unknown>()
  const rows = () => select('SELECT uniqExact(_block_number), count() FROM finding_arrivals')
  for (let insert = 0; insert < 3; insert++) {
    await client.command({
      query: `INSERT INTO exceptions (workspace_id, surface_id, received_at, stored_at, finding_id)
              SELECT 'ws_1', 'srf_1', now(), now(), '${`fnd_${'a'.repeat(26)}`}'`,
      clickhouse_settings: { async_insert: 0, wait_end_of_query: 1 },
    })
  }
  expect(await rows()).toEqual([[3, 3]])
  await client.command({ query: 'OPTIMIZE TABLE finding_arrivals FINAL' })
  expect(await rows()).toEqual([[3, 3]])
  const ttl = await select(
    `SELECT extract(engine_full, 'TTL ([^S]*) SETTINGS') FROM system.tables
     WHERE database = currentDatabase() AND name = 'finding_arrivals'`,
  )
  expect(ttl).toEqual([['stored_at + toIntervalHour(48)']])
})
