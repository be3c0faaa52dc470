import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'

const MIGRATIONS = fileURLToPath(new URL('../../../clickhouse/migrations', import.meta.url))

/** A database with an older schema, which can be migrated to the newest schema with its rows. */
export interface OlderDatabase {
  readonly client: ClickHouseClient
  migrate(): Promise<void>
  drop(): Promise<void>
}

/** Creates a database without the migrations from `before` on, which is a number as in the file names. */
export async function createOlderDatabase(url: string, name: string, before: string): Promise<OlderDatabase> {
  const connection = { url }
  const bringTo = async (directory: string) => {
    const admin = createClickHouse(connection)
    await migrate(admin, { database: name, retentionDays: 30, logger: createLogger('test', 'fatal'), directory })
    await admin.close()
  }
  const olderFiles = await mkdtemp(join(tmpdir(), 'penstock-migrations-'))
  for (const file of (await readdir(MIGRATIONS)).filter(file => file < before)) {
    await copyFile(join(MIGRATIONS, file), join(olderFiles, file))
  }
  await bringTo(olderFiles)
  await rm(olderFiles, { recursive: true })
  const client = createClickHouse({ ...connection, database: name })
  return {
    client,
    migrate: () => bringTo(MIGRATIONS),
    async drop() {
      await client.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` })
      await client.close()
    },
  }
}
