import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { clusterForm } from './cluster-form.ts'
import { readMigrations } from './migration-files.ts'

const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url))
const replicated = { name: 'prod', isReplicated: true }
const first = { shard: 0, replica: 0 }
const second = { shard: 0, replica: 1 }

it('leaves statements as they are without replication', async () => {
  for (const { statements } of await readMigrations(MIGRATIONS)) {
    for (const statement of statements) {
      expect(clusterForm(statement, { name: 'prod', isReplicated: false }, second)).toBe(statement)
    }
  }
})

it('replicates each table of every migration, with its own parameters behind those of the replica', async () => {
  const statements = (await readMigrations(MIGRATIONS)).flatMap(migration => migration.statements)
  const tables = statements.filter(statement => statement.startsWith('CREATE TABLE'))
  expect(tables.length).toBeGreaterThan(15)
  for (const table of tables) {
    const form = clusterForm(table, replicated, second) ?? ''
    expect(form).toMatch(
      /^ENGINE = Replicated(Aggregating|Replacing)?MergeTree\('\/clickhouse\/tables\/prod\/\{shard\}\/\{database\}\/\{table\}', '\{replica\}'/m,
    )
  }
  expect(
    clusterForm(
      'CREATE TABLE IF NOT EXISTS a (b UInt8)\nENGINE = ReplacingMergeTree(rank)\nORDER BY b',
      replicated,
      first,
    ),
  ).toBe(
    "CREATE TABLE IF NOT EXISTS a (b UInt8)\nENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/prod/{shard}/{database}/{table}', '{replica}', rank)\nORDER BY b",
  )
})

it('changes rows on the first replica only, which others copy', () => {
  for (const statement of [
    'INSERT INTO a SELECT 1',
    'ALTER TABLE a UPDATE b = 1 WHERE 1',
    'ALTER TABLE a DELETE WHERE 1',
    'ALTER TABLE a MATERIALIZE INDEX b',
  ]) {
    expect(clusterForm(statement, replicated, first)).toBe(statement)
    expect(clusterForm(statement, replicated, second)).toBeUndefined()
  }
  const addsColumn = 'ALTER TABLE a ADD COLUMN IF NOT EXISTS b UInt8'
  expect(clusterForm(addsColumn, replicated, second)).toBe(addsColumn)
})
