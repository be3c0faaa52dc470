import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { migrate } from '../../clickhouse/migrate.ts'
import { createLogger } from '../../shared/logger.ts'

const MIGRATIONS = fileURLToPath(new URL('../../clickhouse/migrations', import.meta.url))
const DATABASE = `migrate_with_data_${process.pid}`
const ROWS = 60_000

describe('migration 0006', () => {
  const connection = { url: inject('services').clickhouseUrl, user: 'default', password: '' }
  const client: ClickHouseClient = createClickHouse({ ...connection, database: DATABASE })
  let olderFiles: string

  beforeAll(async () => {
    olderFiles = await mkdtemp(join(tmpdir(), 'penstock-migrations-'))
    for (const name of (await readdir(MIGRATIONS)).filter(name => name < '0006')) {
      await copyFile(join(MIGRATIONS, name), join(olderFiles, name))
    }
  })
  afterAll(async () => {
    await client.command({ query: `DROP DATABASE IF EXISTS ${DATABASE} SYNC` })
    await client.close()
    await rm(olderFiles, { recursive: true })
  })

  async function bringTo(directory: string): Promise<void> {
    const admin = createClickHouse(connection)
    await migrate(admin, { database: DATABASE, retentionDays: 30, logger: createLogger('test', 'fatal'), directory })
    await admin.close()
  }

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

  it('finds the words of records from before and after it, and reads neither for nothing', async () => {
    await bringTo(olderFiles)
    await addLogs(1_000_000)
    await bringTo(MIGRATIONS)
    await addLogs(2_000_000)

    expect(await found('1000007')).toEqual([{ body: 'Order 1000007 was SHIPPED' }])
    expect(await found('2000007')).toEqual([{ body: 'Order 2000007 was SHIPPED' }])
    expect(await found('3000007')).toEqual([])
    const indexes =
      "SELECT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'logs'"
    expect(await select(`${indexes} ORDER BY name`)).toEqual([{ name: 'logs_by_token' }, { name: 'logs_by_trace' }])

    // Parts that were there are indexed in the background.
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
    await bringTo(MIGRATIONS)
    expect(await found('1000007')).toHaveLength(1)
    expect(await found('2000007')).toHaveLength(1)
  })
})
