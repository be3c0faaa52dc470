import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import { type MigrateOptions, migrate } from '../../../clickhouse/migrate/migrate.ts'
import { DAY_S } from '../../../schemas/units.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { runningWorkers, startHeartbeat } from '../../../shared/queue/watch/worker-heartbeats.ts'
import { PermanentError, TransientError } from '../../../shared/runtime/errors.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const logger = createLogger('test', 'fatal')

const FIRST = `CREATE TABLE IF NOT EXISTS \${database}.spans (workspace_id String, received_at DateTime)
  ENGINE = MergeTree PARTITION BY toDate(received_at) ORDER BY workspace_id
  TTL toDate(received_at) + INTERVAL \${retention_days} DAY SETTINGS ttl_only_drop_parts = 1;
CREATE TABLE IF NOT EXISTS \${database}.applied (at DateTime64(6) DEFAULT now64(6)) ENGINE = MergeTree ORDER BY at;
INSERT INTO \${database}.applied SELECT now64(6);\n`
const SECOND = `ALTER TABLE spans ADD COLUMN IF NOT EXISTS name String;\n`
/** Migration that waits three seconds in its middle, so that a process can be killed there. */
const SLOW = `CREATE TABLE IF NOT EXISTS \${database}.before_sleep (x UInt8) ENGINE = MergeTree ORDER BY x;
INSERT INTO \${database}.before_sleep SELECT sleep(3);
CREATE TABLE IF NOT EXISTS \${database}.after_sleep (x UInt8) ENGINE = MergeTree ORDER BY x;\n`

describe('migrate', () => {
  let client: ClickHouseClient
  let directory: string
  let database: string
  let databases = 0

  beforeAll(() => {
    client = createClickHouse({ url: sharedServices().clickhouseUrl })
  })
  afterAll(() => client.close())
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'penstock-migrations-'))
    database = `migrate_test_${process.pid}_${databases++}`
    return async () => {
      await rm(directory, { recursive: true })
      await client.command({ query: `DROP DATABASE IF EXISTS ${database}` })
    }
  })

  it('leads to the same tables as the short way that other tests take', async () => {
    const quick = `${database}_quick`
    await migrate(client, { database, retentionDays: 30, logger })
    await migrateQuickly(client, { database: quick, retentionDays: 30, logger })
    const tablesOf = (name: string) =>
      select(
        `SELECT name, replaceAll(create_table_query, '${name}.', '') AS statement FROM system.tables
         WHERE database = '${name}' ORDER BY name`,
      )
    expect(await tablesOf(quick)).toEqual(await tablesOf(database))
    const journalOf = (name: string) => select(`SELECT id, checksum FROM ${name}.schema_migrations ORDER BY id`)
    expect(await journalOf(quick)).toEqual(await journalOf(database))
    await client.command({ query: `DROP DATABASE ${quick}` })
  })

  it('applies each file once when five processes migrate at the same time', async () => {
    await write({ '0001_first.sql': FIRST, '0002_second.sql': SECOND })
    const exits = await Promise.all(Array.from({ length: 5 }, () => startMigrator()).map(child => once(child, 'exit')))
    expect(exits.map(([code]) => code)).toEqual([0, 0, 0, 0, 0])
    expect(await select(`SELECT id, count() AS n FROM ${database}.schema_migrations GROUP BY id ORDER BY id`)).toEqual([
      { id: 1, n: 1 },
      { id: 2, n: 1 },
    ])
    expect(await select(`SELECT count() AS n FROM ${database}.applied`)).toEqual([{ n: 1 }])
    expect(await tables()).toEqual(['applied', 'schema_migrations', 'spans'])
  })

  it('sets the deduplication windows and fsync of the tables that workers fill, and changes them with the settings', async () => {
    const own = { database, logger, retentionDays: 30 }
    await migrate(client, own)
    const settings = async (table: string) => {
      const [row] = await select<{ engine: string }>(
        `SELECT engine_full AS engine FROM system.tables WHERE database = '${database}' AND name = '${table}'`,
      )
      const value = (name: string) => Number(new RegExp(`\\b${name} = (\\d+)`).exec(row?.engine ?? '')?.[1] ?? 0)
      return [value('non_replicated_deduplication_window'), value('fsync_after_insert'), value('fsync_part_directory')]
    }
    expect(await settings('spans')).toEqual([4 * DAY_S, 1, 1])
    expect(await settings('ingest_log')).toEqual([16 * DAY_S, 1, 1])
    for (const view of ['findings', 'finding_buckets']) {
      expect(await settings(view)).toEqual(await settings('exceptions'))
    }
    const others = await select<{ name: string }>(
      `SELECT name FROM system.tables WHERE database = '${database}' AND engine LIKE '%MergeTree'
       AND (engine_full NOT LIKE '%fsync_after_insert = 1%')`,
    )
    expect(others.map(({ name }) => name)).toEqual(['installation', 'schema_migrations'])
    await migrate(client, { ...own, tableSettings: { insertsPerSecond: 0.5, fsync: false } })
    expect(await settings('spans')).toEqual([43_200, 0, 0])
  })

  it('continues after a migrator was killed in the middle of a file', async () => {
    await write({ '0001_first.sql': FIRST, '0002_slow.sql': SLOW, '0003_second.sql': SECOND })
    const child = startMigrator()
    await expect.poll(tables, { timeout: 20_000 }).toContain('before_sleep')
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await tables()).toContain('schema_migrations_lock')

    await Promise.all([run({ lockExpiryMs: 1_000 }), run({ lockExpiryMs: 1_000 })])
    expect(await select(`SELECT id, count() AS n FROM ${database}.schema_migrations GROUP BY id ORDER BY id`)).toEqual([
      { id: 1, n: 1 },
      { id: 2, n: 1 },
      { id: 3, n: 1 },
    ])
    expect(await tables()).toEqual(expect.arrayContaining(['before_sleep', 'after_sleep']))
    expect(await tables()).not.toContain('schema_migrations_lock')
  })

  it('waits while another migrator holds the lock, and gives up after its time', async () => {
    await write({ '0001_slow.sql': SLOW })
    const slow = run({ lockExpiryMs: 2_000 })
    await expect.poll(tables, { timeout: 20_000 }).toContain('before_sleep')
    await expect(run({ lockExpiryMs: 2_000, lockWaitMs: 100 })).rejects.toThrow(TransientError)
    await Promise.all([slow, run({ lockExpiryMs: 2_000 })])
    expect(await select(`SELECT count() AS n FROM ${database}.before_sleep`)).toEqual([{ n: 1 }])
  })

  it('refuses a migration that was edited after it was applied', async () => {
    await write({ '0001_first.sql': FIRST })
    await run()
    await write({ '0001_first.sql': `${FIRST}-- a thought\n` })
    await expect(run()).rejects.toThrow(PermanentError)
    await expect(run()).rejects.toThrow(/0001_first.sql was edited/)
  })

  it('refuses a migration that needs quiet while workers run, before it changes anything', async () => {
    await write({ '0001_first.sql': FIRST, '0002_second.sql': `-- Run it while no workers do: why.\n${SECOND}` })
    const redis = connectConsumer(`${sharedServices().redisUrl}/11`, logger)
    const heartbeat = startHeartbeat(redis, [])
    await expect.poll(() => runningWorkers(redis)).toHaveLength(1)
    const options = { runningWorkers: () => runningWorkers(redis) }
    await expect(run(options)).rejects.toThrow(/0002_second.sql must run while no workers do, but 1 run \(.+:\d+\)/)
    expect(await select(`SELECT id FROM ${database}.schema_migrations`)).toEqual([{ id: 1 }])
    await heartbeat.stop()
    expect(await runningWorkers(redis)).toEqual([])
    await run(options)
    expect(await select(`SELECT id FROM ${database}.schema_migrations ORDER BY id`)).toEqual([{ id: 1 }, { id: 2 }])
    redis.disconnect()
  })

  it('leaves migrations of a newer checkout alone', async () => {
    await write({ '0001_first.sql': FIRST, '0002_second.sql': SECOND })
    await run()
    await rm(join(directory, '0002_second.sql'))
    await run()
    expect(await select(`SELECT count() AS n FROM ${database}.schema_migrations`)).toEqual([{ n: 2 }])
  })

  it('applies a changed retention to stored rows', async () => {
    await write({ '0001_first.sql': FIRST })
    await run({ retentionDays: 30 })
    await client.command({
      query: `INSERT INTO ${database}.spans SELECT 'w', now() - INTERVAL number DAY FROM numbers(20)`,
      clickhouse_settings: { async_insert: 0 },
    })
    await run({ retentionDays: 7 })
    const [table] = await select<{ ttl: string }>(
      `SELECT extract(engine_full, 'TTL (.*) SETTINGS') AS ttl FROM system.tables WHERE database = '${database}' AND name = 'spans'`,
    )
    expect(table?.ttl).toBe('toDate(received_at) + toIntervalDay(7)')
    // Expired parts are removed by the next merge.
    await expect
      .poll(
        async () => {
          await client.command({ query: `OPTIMIZE TABLE ${database}.spans` })
          return (await select<{ n: number }>(`SELECT count() AS n FROM ${database}.spans`))[0]?.n
        },
        { timeout: 20_000 },
      )
      .toBeLessThanOrEqual(8)
    await run({ retentionDays: 7 })
  })

  it('applies the schema of this checkout, and a changed retention to each of its tables', async () => {
    const own = { database, logger }
    await migrate(client, { ...own, retentionDays: 30 })
    await migrate(client, { ...own, retentionDays: 14 })
    const expiring = await select<{ name: string; days: string }>(
      `SELECT name, extract(engine_full, 'toIntervalDay\\((\\d+)\\)') AS days FROM system.tables
       WHERE database = '${database}' AND days != '' ORDER BY name`,
    )
    expect(expiring.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['exceptions', 'finding_buckets', 'findings', 'spans']),
    )
    expect(new Set(expiring.map(({ days }) => days))).toEqual(new Set(['14']))
  })

  async function write(files: Record<string, string>): Promise<void> {
    await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(directory, name), text)))
  }

  function run(options: Partial<MigrateOptions> = {}): Promise<unknown> {
    return migrate(client, { database, retentionDays: 30, logger, directory, ...options })
  }

  /** Starts a migration in a separate process, which a test can kill. */
  function startMigrator(): ChildProcess {
    const script = `
      import { createClickHouse } from './clickhouse/client.ts'
      import { migrate } from './clickhouse/migrate/migrate.ts'
      import { createLogger } from './shared/runtime/logger.ts'
      const client = createClickHouse({ url: ${JSON.stringify(sharedServices().clickhouseUrl)} })
      const options = ${JSON.stringify({ database, retentionDays: 30, directory })}
      await migrate(client, { ...options, logger: createLogger('migrate', 'fatal') })
      await client.close()`
    const args = ['--input-type=module', '--eval', script]
    return spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit' })
  }

  async function tables(): Promise<string[]> {
    const query = `SELECT name FROM system.tables WHERE database = '${database}' ORDER BY name`
    return (await select<{ name: string }>(query)).map(row => row.name)
  }

  async function select<T>(query: string): Promise<T[]> {
    const settings = { output_format_json_quote_64bit_integers: 0 } as const
    const result = await client.query({ query, format: 'JSONEachRow', clickhouse_settings: settings })
    return result.json<T>()
  }
})
