import { Command } from 'commander'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { addDoctor } from '../../../cli/commands/doctor.ts'
import { doctorConfigSchema } from '../../../cli/config.ts'
import { withExamined } from '../../../cli/connect.ts'
import type { NamedFinding } from '../../../cli/doctor/check.ts'
import { runProgram } from '../../../cli/program.ts'
import { claimedClickHouse } from '../../../clickhouse/claimed-clickhouse.ts'
import { createClickHouse } from '../../../clickhouse/client.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { DAY_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { backUpDirectory } from '../../../shared/backup/back-up-directory.ts'
import { Backups } from '../../../shared/backup/backups.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { readInstallation } from '../../../shared/directory/installation-record.ts'
import { ensureReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { adoptInstallation } from '../../../shared/installation/adopt-installation.ts'
import { claimedBucket } from '../../../shared/installation/claimed-store.ts'
import { newInstallation } from '../../../shared/installation/queue-losses.ts'
import { INSTALLATION_KEY } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { startHeartbeat } from '../../../shared/queue/watch/worker-heartbeats.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { runCli } from '../../support/clients/run-cli.ts'
import { migrateQuickly } from '../../support/migrate-quickly.ts'
import { collect } from '../../support/oracles/collect.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'
import { aSurface, aWorkspace, aWorkspaceKey } from '../../support/workspaces/directory-records.ts'

const services = sharedServices()
const database = `doctor_${process.pid}`
const logger = pino({ level: 'silent' })
const ENV = {
  REDIS_URL: `${services.redisUrl}/3`,
  DIRECTORY_REDIS_URL: `${services.redisUrl}/4`,
  CLICKHOUSE_URL: services.clickhouseUrl,
  CLICKHOUSE_DATABASE: database,
  ...s3Settings(services.s3),
}
const KEY = 'a key of the operator, with over 32 bytes'

const queues = new Redis(ENV.REDIS_URL)
const directory = new Redis(ENV.DIRECTORY_REDIS_URL)
const store = createDirectory(directory)
const objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
const admin = createClickHouse({ url: services.clickhouseUrl })
const clickhouse = createClickHouse({ url: services.clickhouseUrl, database })
const stores = [claimedClickHouse(clickhouse), claimedBucket(objects)]

beforeAll(() => migrateQuickly(admin, { database, retentionDays: 30, logger }))
beforeEach(async () => {
  await Promise.all([queues.flushdb(), directory.flushdb(), removeBackups()])
  await store.putWorkspace(aWorkspace({ id: 'ws_1', slug: 'acme' }))
  await store.putSurface(aSurface({ id: 'srf_1' }))
  await ensureReceiptSecret(directory)
  await adoptInstallation({ directory, queues: onOneServer(queues), stores })
  await backUp()
})
afterAll(async () => {
  await Promise.all([queues.flushdb(), directory.flushdb(), removeBackups()])
  await admin.command({ query: `DROP DATABASE ${database} SYNC` })
  await admin.close()
  await clickhouse.close()
  await objects.deleteMany([INSTALLATION_KEY])
  objects.close()
  queues.disconnect()
  directory.disconnect()
})

async function removeBackups(): Promise<void> {
  const pages = await collect(objects.list('directory-backups/'))
  await objects.deleteMany(pages.flatMap(page => page.map(({ key }) => key)))
}

async function backUp(key?: string): Promise<void> {
  await backUpDirectory({ redis: directory, store, backups: new Backups({ objects, key, now: Date.now }) })
}

/** Runs while workers show that they run, with pools of these queues. */
async function withWorkers<T>(pools: readonly (typeof QUEUES)[number][], work: () => Promise<T>): Promise<T> {
  const redis = connectConsumer(ENV.REDIS_URL, logger)
  const heartbeat = startHeartbeat(redis, pools)
  try {
    await until('the workers are known', async () => (await queues.keys('penstock:{installation}:worker*')).length > 1)
    return await work()
  } finally {
    await heartbeat.stop()
    redis.disconnect()
  }
}

interface Examination {
  readonly code: number
  readonly findings: readonly NamedFinding[]
  readonly stderr: string
}

/** Runs `doctor --json`. `aheadMs` is how far the clock of this host is ahead. */
async function examine(settings: Record<string, string | undefined> = {}, aheadMs = 0): Promise<Examination> {
  const env = { ...ENV, ...settings }
  let [stdout, stderr, code] = ['', '', 0]
  const program = new Command('penstock').exitOverride()
  const context = {
    print: (text: string) => {
      stdout += `${text}\n`
    },
    printError: () => undefined,
    exit: (ended: number, error?: string) => {
      stderr += error ?? ''
      code = ended
    },
  }
  addDoctor(program, {
    ...context,
    withExamined: run =>
      withExamined({ config: parseConfig(doctorConfigSchema, env), env }, logger, examined =>
        run({ ...examined, now: () => Date.now() + aheadMs }),
      ),
  })
  await runProgram(program, ['doctor', '--json'], context)
  const findings = stdout.split('\n').filter(Boolean)
  return { code, findings: findings.map(line => JSON.parse(line) as NamedFinding), stderr }
}

/** Returns the findings that are not well. */
const notWell = ({ findings }: Examination) => findings.filter(({ result }) => result !== 'ok')

it('a healthy installation has a finding of each check, and exits with 0', async () => {
  const examined = await withWorkers(QUEUES, () => examine())
  expect(notWell(examined)).toEqual([])
  expect(examined.code).toBe(0)
  expect(examined.findings.map(({ check }) => check)).toEqual([
    ...['settings', 'redis of the queues', 'redis of the directory', 'clickhouse', 'schema', 'bucket'],
    ...['retention', 'installation', 'clocks', 'queues', 'directory', 'backups'],
  ])
})

it('another RETENTION_DAYS than that of the tables is a fault', async () => {
  const examined = await withWorkers(QUEUES, () => examine({ RETENTION_DAYS: '7' }))
  expect(notWell(examined)).toEqual([
    {
      check: 'retention',
      result: 'fault',
      text: expect.stringMatching(
        /^RETENTION_DAYS is 7, but the table build_reports keeps rows for 30 days \(and \d\d more\): docs/,
      ),
    },
  ])
})

it('warnings alone exit with 12: a queue without a worker, a key that expires soon, a backup in plain text', async () => {
  const expiresAt = new Date(Date.now() + 3 * DAY_MS).toISOString()
  await store.createWorkspaceKey(aWorkspaceKey({ createdAt: new Date().toISOString(), expiresAt }))
  const examined = await withWorkers(
    QUEUES.filter(queue => queue !== 'receipts'),
    () => examine({ DIRECTORY_BACKUP_KEY: KEY }),
  )
  expect(notWell(examined)).toEqual([
    { check: 'queues', result: 'warning', text: 'no worker has a pool of receipts' },
    { check: 'directory', result: 'warning', text: 'acme: 1 key expires within 7 days' },
    {
      check: 'backups',
      result: 'warning',
      text: 'the newest backup is not encrypted, although DIRECTORY_BACKUP_KEY is set',
    },
  ])
  expect(examined.code).toBe(12)
})

it('requests that wait without a worker, and jobs that failed, are found', async () => {
  const { keys } = onOneServer(queues).firstOf('traces')
  await queues.hset(keys.flow, { acceptedPayloads: 7, donePayloads: 2 })
  await queues.zadd(keys.failed('express'), 1, 'a', 2, 'b')
  const examined = await examine()
  expect(notWell(examined)).toEqual([
    { check: 'queues', result: 'fault', text: 'traces: 5 requests wait, and no worker has a pool of the queue' },
    { check: 'queues', result: 'warning', text: 'traces: 2 jobs failed and will not be tried again' },
    { check: 'queues', result: 'warning', text: expect.stringMatching(/^no worker has a pool of logs, /) },
  ])
  expect(examined.code).toBe(13)
})

it('an empty directory, a backup of another time that is encrypted, and a clock that is ahead are faults', async () => {
  await removeBackups()
  await backUp(KEY)
  await directory.flushdb()
  const examined = await withWorkers(QUEUES, () => examine({}, 30 * 60 * MINUTE_MS))
  const faults = notWell(examined).map(({ check, result, text }) => `${check} ${result}: ${text}`)
  expect(faults).toEqual([
    expect.stringMatching(/^installation fault: the directory is empty or another one, and ClickHouse belongs to/),
    'clocks fault: the clock of this host is 108000 s ahead of that of the Redis of the queues',
    'clocks fault: the clock of this host is 108000 s ahead of that of the Redis of the directory',
    'clocks fault: the clock of this host is 108000 s ahead of that of ClickHouse',
    'directory fault: the directory is empty: restore its backup, or create a workspace',
    'backups fault: the newest backup of the directory was made 30 hours ago',
    'backups fault: the newest backup is encrypted, and DIRECTORY_BACKUP_KEY is not set: set it to its key',
  ])
})

it('stores of two installations are a fault, which --adopt mends', async () => {
  const own = (await readInstallation(directory))?.id
  const other = newInstallation().id
  await stores[0]?.replace({ id: other, epochs: {} })
  const examined = await withWorkers(QUEUES, () => examine())
  expect(notWell(examined)).toMatchObject([
    {
      check: 'installation',
      result: 'fault',
      text: expect.stringContaining(`ClickHouse belongs to installation ${other}`),
    },
  ])
  const adopted = await runCli(['doctor', '--adopt'], { env: ENV })
  expect(adopted).toMatchObject({ code: 0, stderr: '' })
  expect(adopted.stdout).toMatch(new RegExp(`^clickhouse +${other} +${own}`, 'm'))
  expect(adopted.stdout).toMatch(new RegExp(`^bucket +${own} +${own}`, 'm'))
  expect(notWell(await withWorkers(QUEUES, () => examine()))).toEqual([])
})

it('a table that is missing is a fault with the command to run', async () => {
  await admin.command({ query: `DROP TABLE ${database}.trace_buckets SYNC` })
  const examined = await withWorkers(QUEUES, () => examine())
  expect(notWell(examined)).toEqual([
    { check: 'schema', result: 'fault', text: 'the table trace_buckets is missing: run npm run migrate' },
  ])
  expect(examined.code).toBe(13)
})

it('stores that do not answer are faults, and the others are examined', async () => {
  const nowhere = '127.0.0.1:1'
  const settings = {
    REDIS_URL: `redis://${nowhere}`,
    CLICKHOUSE_URL: `http://${nowhere}`,
    S3_ENDPOINT: `http://${nowhere}`,
  }
  const examined = await examine(settings)
  const faults = new Set(notWell(examined).map(({ check }) => check))
  expect([...faults]).toEqual([
    'redis of the queues',
    'clickhouse',
    'schema',
    'bucket',
    'retention',
    'installation',
    'queues',
    'backups',
  ])
  expect(examined.findings).toContainEqual({ check: 'directory', result: 'ok', text: '1 workspace' })
  expect(examined.code).toBe(13)
})

it('an environment that contradicts itself exits with 2, and one that is doubtful is a warning', async () => {
  const two = `${services.clickhouseUrl},http://127.0.0.1:1`
  const refused = await examine({ CLICKHOUSE_URL: two })
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/name their cluster in CLICKHOUSE_CLUSTER/)])
  const shared = await examine({ DIRECTORY_REDIS_URL: ENV.REDIS_URL, AWS_ACCESS_KEY_ID: undefined })
  expect(shared.findings.filter(({ check }) => check === 'settings').map(({ result }) => result)).toEqual([
    'warning',
    'fault',
  ])
})
