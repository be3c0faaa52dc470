import { ClickHouseError } from '@clickhouse/client'
import type { ClickHouseClient } from '../client.ts'
import { quoteIdentifier } from '../quote.ts'
import { selectRows } from '../select.ts'
import { type DescribedTable, isMissing } from './describe-tables.ts'
import type { Migration } from './migration-files.ts'

/** The migrations that a database has. */
export interface Journal {
  /** Checksums by the number of the migration. */
  readonly applied: ReadonlyMap<number, string>
  /** The tables and views that the last of them has left (docs/decisions/055). */
  readonly made: readonly DescribedTable[]
}

const ALREADY_EXISTS = new Set(['57', '82'])
const READ_TIMEOUT_MS = 10_000

/** Creates the database and its journal, unless they exist. */
export async function createJournal(client: ClickHouseClient, database: string): Promise<void> {
  const statements = [
    `CREATE DATABASE IF NOT EXISTS ${quoteIdentifier(database)}`,
    `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(database)}.schema_migrations
     (id UInt32, file_name String, checksum FixedString(64), applied_at DateTime64(3) DEFAULT now64(3),
      made String COMMENT 'the tables and views after this migration, as JSON' CODEC(ZSTD(1)))
     ENGINE = MergeTree ORDER BY id`,
  ]
  for (const query of statements) {
    await client.command({ query }).catch(error => {
      // IF NOT EXISTS is not atomic: of two concurrent CREATEs one can still fail with ALREADY_EXISTS.
      if (!(error instanceof ClickHouseError && ALREADY_EXISTS.has(error.code))) throw error
    })
  }
}

/** Reads the journal of one server, or returns undefined if there is none. Throws as `selectRows` does. */
export async function readJournal(client: ClickHouseClient, database: string): Promise<Journal | undefined> {
  try {
    const [row] = await selectRows<{ ids: number[]; checksums: string[]; made: string }>(client, {
      query: `SELECT groupArray(id) AS ids, groupArray(checksum) AS checksums, argMax(made, (id, applied_at)) AS made
              FROM ${quoteIdentifier(database)}.schema_migrations`,
      params: {},
      signal: AbortSignal.timeout(READ_TIMEOUT_MS),
    })
    const { ids = [], checksums = [], made = '' } = row ?? {}
    return {
      applied: new Map(ids.map((id, i) => [id, checksums[i] ?? ''])),
      made: made === '' ? [] : (JSON.parse(made) as DescribedTable[]),
    }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Notes that a migration was applied, with the tables and views that it and those before it have made. */
export async function noteApplied(
  client: ClickHouseClient,
  database: string,
  { id, fileName, checksum }: Migration,
  made: readonly DescribedTable[],
): Promise<void> {
  await client.insert({
    table: `${quoteIdentifier(database)}.schema_migrations`,
    values: [{ id, file_name: fileName, checksum, made: JSON.stringify(made) }],
    columns: ['id', 'file_name', 'checksum', 'made'],
    format: 'JSONEachRow',
    clickhouse_settings: { async_insert: 0 },
  })
}
