import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse, insertNative } from '../../../clickhouse/client.ts'
import { SchemaError } from '../../../clickhouse/migrate/compare-schema.ts'
import { migrate } from '../../../clickhouse/migrate/migrate.ts'
import { SchemaWatch } from '../../../clickhouse/migrate/schema-watch.ts'
import { selectBytes } from '../../../clickhouse/select.ts'
import { ROOT } from '../../../deploy/local/config.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const { clickhouseUrl } = sharedServices()
const silent = pino({ level: 'silent' })
const SPANS = 150
const COLUMNS = ['workspace_id', 'surface_id', 'received_at', 'trace_id', 'span_id', 'start_time_unix_nano']

const admin = createClickHouse({ url: clickhouseUrl })
const opened: (() => unknown)[] = []
let database = ''
let databases = 0

beforeEach(() => {
  database = `schema_watch_${process.pid}_${databases++}`
})
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
  await admin.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` })
})
afterAll(() => admin.close())

/** Watches the schema, with a client whose inserts wait for missing views. */
function watchSchema(url = clickhouseUrl): { watch: SchemaWatch; clickhouse: ClickHouseClient } {
  const held = new Map<string, string>()
  const clickhouse = createClickHouse({ url, database, held })
  const watch = new SchemaWatch({ clickhouse, database, logger: silent, held }, { everyMs: 50, againMs: 50 })
  opened.push(
    () => clickhouse.close(),
    () => watch.stop(),
  )
  return { watch, clickhouse }
}

const migrateQuiet = () => migrateQuickly(admin, { database, retentionDays: 30, logger: silent })

/** Migrates and returns the lines of the log above `debug`. */
async function migrateLogged(): Promise<string[]> {
  const lines: string[] = []
  const logger = pino({ base: null }, { write: line => void lines.push(JSON.parse(line).msg) })
  await migrate(admin, { database, retentionDays: 30, logger })
  return lines
}

const untilFault = (watch: SchemaWatch, fault: string | undefined) =>
  until(`the fault is ${fault}`, () => watch.fault === fault)

async function rowsOf(table: string): Promise<number> {
  const result = await admin.query({ query: `SELECT count() AS n FROM ${database}.${table}`, format: 'JSONEachRow' })
  return Number((await result.json<{ n: string }>())[0]?.n)
}

/** Inserts spans of as many traces as workers do. */
async function insertSpans(clickhouse: ClickHouseClient, token: string): Promise<void> {
  const block = await selectBytes(admin, {
    query: `SELECT toLowCardinality('ws_1') AS workspace_id, toLowCardinality('srf_1') AS surface_id, now64(3) AS received_at,
        toFixedString(leftPad('${token}' || toString(number), 16), 16) AS trace_id, toFixedString('span', 8) AS span_id,
        toUInt64(toUnixTimestamp64Nano(now64(9))) AS start_time_unix_nano
      FROM numbers(${SPANS}) FORMAT Native`,
    params: {},
    signal: AbortSignal.timeout(5_000),
  })
  await insertNative(clickhouse, {
    ...{ table: 'spans', columns: COLUMNS, block: [block], deduplicationToken: token, timeoutMs: 5_000 },
  })
}

describe('a database that the migrations have not made', () => {
  it('is named until they have run', async () => {
    const { watch } = watchSchema()
    const fault = `clickhouse: the database ${database} has no schema: run npm run migrate`
    expect(watch.fault).toBe('the schema of clickhouse is not checked yet')
    await untilFault(watch, fault)
    await admin.command({ query: `CREATE DATABASE ${database}` })
    await watch.check()
    expect(watch.fault).toBe(fault)
    await migrate(admin, { database, retentionDays: 30, logger: silent })
    await untilFault(watch, undefined)
  })

  it('is named by the first migration that it lacks', async () => {
    await migrateQuiet()
    await admin.command({
      query: `ALTER TABLE ${database}.schema_migrations DELETE WHERE id > 5`,
      clickhouse_settings: { mutations_sync: '1' },
    })
    const { watch } = watchSchema()
    await untilFault(
      watch,
      'clickhouse: the migration 0006_source_maps.sql is not applied: run npm run migrate (and 3 more)',
    )
    expect(await migrateLogged()).toEqual(['migrations applied'])
    await untilFault(watch, undefined)
  })
})

describe('a schema from which something was dropped', () => {
  it('the table of a view: inserts fail with its name, and all are stored once it was made again', async () => {
    await migrateQuiet()
    const { watch, clickhouse } = watchSchema()
    await untilFault(watch, undefined)
    await insertSpans(clickhouse, 'a')
    await admin.command({ query: `DROP TABLE ${database}.trace_buckets SYNC` })
    await untilFault(watch, 'clickhouse: the table trace_buckets is missing: run npm run migrate')
    const refused = insertSpans(clickhouse, 'b')
    await expect(refused).rejects.toThrow(TransientError)
    await expect(refused).rejects.toThrow(/UNKNOWN_TABLE: .*trace_buckets/)
    expect(await migrateLogged()).toEqual([
      'made the table trace_buckets again: its rows are lost',
      'settings of tables changed',
    ])
    await untilFault(watch, undefined)
    await insertSpans(clickhouse, 'b')
    expect([await rowsOf('spans'), await rowsOf('trace_buckets')]).toEqual([2 * SPANS, SPANS])
  })

  it('a table that ClickHouse still has is brought back with its rows', async () => {
    await migrateQuiet()
    const { watch, clickhouse } = watchSchema()
    await insertSpans(clickhouse, 'a')
    await admin.command({ query: `DROP TABLE ${database}.trace_buckets` })
    await untilFault(watch, 'clickhouse: the table trace_buckets is missing: run npm run migrate')
    expect(await migrateLogged()).toEqual(['brought the table trace_buckets back with its rows'])
    await insertSpans(clickhouse, 'b')
    expect(await rowsOf('trace_buckets')).toBe(2 * SPANS)
  })

  it('the table that views read: they read it again', async () => {
    await migrateQuiet()
    const { watch, clickhouse } = watchSchema()
    await admin.command({ query: `DROP TABLE ${database}.spans SYNC` })
    await untilFault(watch, 'clickhouse: the table spans is missing: run npm run migrate')
    expect(await migrateLogged()).toEqual([
      'made the table spans again: its rows are lost',
      'settings of tables changed',
    ])
    await untilFault(watch, undefined)
    await insertSpans(clickhouse, 'a')
    expect([await rowsOf('spans'), await rowsOf('trace_buckets')]).toEqual([SPANS, SPANS])
  })

  it('a view: nothing is stored without it in the table that it reads', async () => {
    await migrateQuiet()
    const { watch, clickhouse } = watchSchema()
    await admin.command({ query: `DROP VIEW ${database}.trace_buckets_from_spans` })
    const missing = 'the materialized view trace_buckets_from_spans is missing: run npm run migrate'
    await untilFault(watch, `clickhouse: ${missing}`)
    await expect(insertSpans(clickhouse, 'a')).rejects.toThrow(new TransientError(missing))
    expect(await rowsOf('spans')).toBe(0)
    expect(await migrateLogged()).toEqual([
      'made the materialized view trace_buckets_from_spans again: it has no rows of what was inserted into spans without it',
    ])
    await untilFault(watch, undefined)
    await insertSpans(clickhouse, 'a')
    expect([await rowsOf('spans'), await rowsOf('trace_buckets')]).toEqual([SPANS, SPANS])
  })

  it('a column is added again, as it was and where it was', async () => {
    await migrateQuiet()
    const before = await createStatement('ingest_log')
    const { watch } = watchSchema()
    for (const column of ['stored_at', 'replayed_at']) {
      await admin.command({ query: `ALTER TABLE ${database}.ingest_log DROP COLUMN ${column}` })
    }
    await untilFault(
      watch,
      'clickhouse: the column stored_at of the table ingest_log is missing: run npm run migrate (and 1 more)',
    )
    expect(await migrateLogged()).toEqual([
      'added the column stored_at to the table ingest_log again: its values are lost',
      'added the column replayed_at to the table ingest_log again: its values are lost',
    ])
    expect(await createStatement('ingest_log')).toBe(before)
    await untilFault(watch, undefined)
  })
})

/** Runs `npm run migrate` and returns its exit code, and the lines of its log. */
async function runMigrate(...args: string[]): Promise<{ code: number | null; lines: string[] }> {
  const child = spawn(process.execPath, ['clickhouse/migrate/main.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, CLICKHOUSE_URL: clickhouseUrl, CLICKHOUSE_DATABASE: database },
  })
  let output = ''
  child.stdout.on('data', data => {
    output += data
  })
  const [code] = await once(child, 'close')
  const lines = output.split('\n').filter(Boolean)
  return { code, lines: lines.map(line => JSON.parse(line).msg) }
}

it('migrate --check exits with 3, names what differs and changes nothing', async () => {
  const unmade = await runMigrate('--check')
  expect([unmade.code, unmade.lines.at(-1)]).toEqual([3, expect.stringMatching(/: the database \S+ has no schema$/)])
  await migrateQuiet()
  await admin.command({ query: `DROP TABLE ${database}.logs SYNC` })
  for (let run = 0; run < 2; run++) {
    const { code, lines } = await runMigrate('--check')
    expect([code, lines.at(-1)]).toEqual([3, expect.stringMatching(/: the table logs is missing$/)])
  }
  expect((await runMigrate()).code).toBe(0)
  const { code, lines } = await runMigrate('--check')
  expect([code, lines.at(-1)]).toEqual([0, 'the schema is up to date'])
  await admin.command({ query: `ALTER TABLE ${database}.build_reports MODIFY COLUMN total Nullable(UInt32)` })
  expect((await runMigrate()).code).toBe(3)
})

it('what was changed is named and left, and what is missing beside it is made again', async () => {
  await migrateQuiet()
  const { watch } = watchSchema()
  await admin.command({ query: `ALTER TABLE ${database}.build_reports MODIFY COLUMN total Nullable(UInt32)` })
  const text = 'the column total of the table build_reports is Nullable(UInt32) instead of Nullable(UInt64)'
  await untilFault(watch, `clickhouse: ${text}: change it back`)
  await admin.command({ query: `DROP TABLE ${database}.logs SYNC` })
  const migration = migrate(admin, { database, retentionDays: 30, logger: silent })
  await expect(migration).rejects.toThrow(SchemaError)
  await expect(migration).rejects.toThrow(text)
  expect(await rowsOf('logs')).toBe(0)
  await admin.command({ query: `ALTER TABLE ${database}.build_reports MODIFY COLUMN total Nullable(UInt64)` })
  await migrate(admin, { database, retentionDays: 30, logger: silent })
  await untilFault(watch, undefined)
})

it('a server that does not answer counts as complete at first, and later as it was', async () => {
  const { watch } = watchSchema('http://127.0.0.1:1')
  await watch.check()
  expect(watch.fault).toBeUndefined()
})

describe('migrations after something was dropped', () => {
  const FIRST = 'CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x;\n'
  let directory: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'penstock-migrations-'))
    opened.push(() => rm(directory, { recursive: true }))
    await write('0001_first.sql', FIRST)
    await run()
  })

  const write = (name: string, text: string) => writeFile(join(directory, name), text)
  const run = () => migrate(admin, { database, retentionDays: 30, logger: silent, directory })

  it('find the tables that they change', async () => {
    await admin.command({ query: `DROP TABLE ${database}.a SYNC` })
    await write('0002_second.sql', 'ALTER TABLE a ADD COLUMN IF NOT EXISTS y UInt8;\n')
    await run()
    expect(await createStatement('a')).toContain('`y` UInt8')
  })

  it('do not make again what one of them has removed before it was interrupted', async () => {
    await admin.command({ query: `INSERT INTO ${database}.a VALUES (7)` })
    const rename = 'RENAME TABLE IF EXISTS a TO b;\n'
    await write('0002_second.sql', `${rename}INSERT INTO unknown SELECT 1;\n`)
    await expect(run()).rejects.toThrow(TransientError)
    await write('0002_second.sql', rename)
    await run()
    expect(await rowsOf('b')).toBe(1)
    await expect(createStatement('a')).rejects.toThrow()
    await run()
  })

  it('leave the tables of an operator alone', async () => {
    await admin.command({ query: `CREATE TABLE ${database}.own (x UInt8) ENGINE = MergeTree ORDER BY x` })
    await write('0002_second.sql', 'CREATE TABLE IF NOT EXISTS c (x UInt8) ENGINE = MergeTree ORDER BY x;\n')
    await run()
    await admin.command({ query: `DROP TABLE ${database}.own SYNC` })
    await run()
    await expect(createStatement('own')).rejects.toThrow()
  })
})

async function createStatement(table: string): Promise<string> {
  const result = await admin.query({ query: `SHOW CREATE TABLE ${database}.${table}`, format: 'JSONEachRow' })
  return (await result.json<{ statement: string }>())[0]?.statement ?? ''
}
