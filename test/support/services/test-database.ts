import { connectDatabase, migrateDatabase } from '../cluster/connect.ts'

/** Database of ClickHouse for one test file. */
export interface TestDatabase {
  readonly name: string
  rows<T>(query: string): Promise<T[]>
  drop(): Promise<void>
}

/** Creates a migrated database. */
export async function createTestDatabase(clickhouseUrl: string, name: string): Promise<TestDatabase> {
  await migrateDatabase(clickhouseUrl, name)
  const client = connectDatabase(clickhouseUrl, name)
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
