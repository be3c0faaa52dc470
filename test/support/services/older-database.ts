import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'

const MIGRATIONS = fileURLToPath(new URL('../../../clickhouse/migrations', import.meta.url))

/** A database of before a migration, which may be brought to the newest schema with what is in it. */
export interface OlderDatabase {
  readonly client: ClickHouseClient
  migrate(): Promise<void>
  drop(): Promise<void>
}

/** `before`: the number of the first migration that is left out, as its file has it. */
export async function createOlderDatabase(url: string, name: string, before: string): Promise<OlderDatabase> {
  const connection = { url, user: 'default', password: '' }
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
