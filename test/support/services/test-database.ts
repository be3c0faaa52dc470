import { pino } from 'pino'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'

/** Database of ClickHouse for one test file. */
export interface TestDatabase {
  readonly name: string
  rows<T>(query: string): Promise<T[]>
  drop(): Promise<void>
}

/** Creates a migrated database. */
export async function createTestDatabase(clickhouseUrl: string, name: string): Promise<TestDatabase> {
  const connection = { url: clickhouseUrl }
  const admin = createClickHouse(connection)
  await migrate(admin, { database: name, retentionDays: 30, logger: pino({ level: 'silent' }) })
  await admin.close()
  const client: ClickHouseClient = createClickHouse({ ...connection, database: name })
  return {
    name,
    async rows<T>(query: string): Promise<T[]> {
      const result = await client.query({ query, format: 'JSONEachRow' })
      return result.json<T>()
    },
    async drop() {
      await client.command({ query: `DROP DATABASE ${name} SYNC` })
      await client.close()
    },
  }
}
