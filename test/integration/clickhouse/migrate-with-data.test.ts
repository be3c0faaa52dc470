import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createOlderDatabase, type OlderDatabase } from '../../support/services/older-database.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const ROWS = 60_000

describe('migration 0006', () => {
  let database: OlderDatabase
  let client: ClickHouseClient

  beforeAll(async () => {
    database = await createOlderDatabase(sharedServices().clickhouseUrl, `migrate_with_data_${process.pid}`, '0006')
    client = database.client
  })
  afterAll(() => database?.drop())

  async function select<T>(query: string): Promise<T[]> {
    return (await client.query({ query, format: 'JSONEachRow' })).json<T>()
  }

  async function addLogs(from: number): Promise<void> {
    await client.command({
      query: `INSERT INTO logs (workspace_id, received_at, timestamp, body)
              SELECT 'ws', now64(3), now64(9), concat('Order ', toString(number), ' was SHIPPED')
              FROM numbers(${from}, ${ROWS})`,
    })
  }

  const found = (word: string) =>
    select<{ body: string }>(`SELECT body FROM logs WHERE workspace_id = 'ws' AND hasToken(lower(body), '${word}')`)

  it('finds words of records from before and after it, and reads no other granules', async () => {
    await addLogs(1_000_000)
    await database.migrate()
    await addLogs(2_000_000)

    expect(await found('1000007')).toEqual([{ body: 'Order 1000007 was SHIPPED' }])
    expect(await found('2000007')).toEqual([{ body: 'Order 2000007 was SHIPPED' }])
    expect(await found('3000007')).toEqual([])
    const indexes =
      "SELECT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'logs'"
    expect(await select(`${indexes} ORDER BY name`)).toEqual([
      { name: 'by_attribute' },
      { name: 'logs_by_time' },
      { name: 'logs_by_token' },
      { name: 'logs_by_trace' },
    ])

    // Existing parts are indexed in the background.
    await expect.poll(granulesForUnknownWord, { timeout: 20_000 }).toMatch(/^Granules: 0\/\d\d$/)
  })

  async function granulesForUnknownWord(): Promise<string | undefined> {
    const plan = await select<{ explain: string }>(
      `EXPLAIN indexes = 1 SELECT body FROM logs WHERE hasToken(lower(body), 'zebra')
       SETTINGS use_skip_indexes_on_data_read = 0`,
    )
    const lines = plan.map(row => row.explain.trim())
    return lines.slice(lines.indexOf('Name: logs_by_token')).find(line => line.startsWith('Granules:'))
  }

  it('may run twice', async () => {
    await client.command({ query: 'ALTER TABLE schema_migrations DELETE WHERE id = 6 SETTINGS mutations_sync = 1' })
    await database.migrate()
    expect(await found('1000007')).toHaveLength(1)
    expect(await found('2000007')).toHaveLength(1)
  })
})
