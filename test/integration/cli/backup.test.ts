import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createBackup } from '../../../cli/backup/create-backup.ts'
import { type Manifest, rowsOf } from '../../../cli/backup/manifest.ts'
import { installationConfigSchema } from '../../../cli/config.ts'
import { withInstallation } from '../../../cli/connect.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { startHeartbeat } from '../../../shared/queue/watch/worker-heartbeats.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import { clusterSettings, connectDatabase, isCluster } from '../../support/cluster/connect.ts'
import { startHoldingProxy } from '../../support/holding-proxy.ts'
import { collect } from '../../support/oracles/collect.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'
import { aWorkspace } from '../../support/workspaces/directory-records.ts'

const services = sharedServices()
const { s3, clickhouseUrl } = services
const [directoryUrl, queuesUrl] = [`${services.redisUrl}/6`, `${services.redisUrl}/9`]
const [DATABASE, COPY] = [`backed_up_${process.pid}`, `backup_copy_${process.pid}`]
/** Looks at the queues are counted one by one. */
const QUEUE_COUNT = QUEUES.length
const KEY = 'a key of the operator, with over 32 bytes'
const TABLES = ['logs', 'spans', 'trace_buckets']
const REPLAY = 'replays/ws_1/srf_1/s1/w1/0.jsonl.gz'

const [redis, queues] = [new Redis(directoryUrl), new Redis(queuesUrl)]
const directory = createDirectory(redis)
const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
const opened: (() => unknown)[] = []
const ENV = {
  ...{ DIRECTORY_REDIS_URL: directoryUrl, REDIS_URL: queuesUrl },
  ...{ CLICKHOUSE_URL: clickhouseUrl, CLICKHOUSE_DATABASE: DATABASE, RETENTION_DAYS: '30' },
  ...clusterSettings(clickhouseUrl),
  ...s3Settings(s3),
}
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase(clickhouseUrl, DATABASE)
  const client = connectDatabase(clickhouseUrl, DATABASE)
  for (const [i, values] of [
    `INSERT INTO logs (workspace_id, surface_id, received_at, time_unix_nano, body) SELECT 'ws_1', 'srf_1', now64(3), number, toString(number) FROM numbers(1000)`,
    `INSERT INTO logs (workspace_id, surface_id, received_at, time_unix_nano, body) SELECT 'ws_1', 'srf_2', now64(3) - INTERVAL 1 DAY, number, 'b' FROM numbers(10)`,
    `INSERT INTO spans (workspace_id, surface_id, received_at, trace_id, span_id, start_time_unix_nano) SELECT 'ws_1', 'srf_1', now64(3), toFixedString(leftPad(toString(number), 16, '0'), 16), '00000001', 1790000000000000000 FROM numbers(100)`,
  ].entries()) {
    await client.command({ query: values, query_id: `backup-test-${process.pid}-${i}` })
  }
  await client.close()
}, 120_000)
beforeEach(async () => {
  await Promise.all([redis.flushdb(), queues.flushdb(), deleteAll('')])
  await directory.putWorkspace(aWorkspace({ id: 'ws_1', slug: 'acme' }))
  for (const key of [REPLAY, 'releases/ws_1/r/manifest-1.json', 'uploads/ws_1/part-1']) await put(key, key)
})
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})
afterAll(async () => {
  await Promise.all([redis.flushdb(), queues.flushdb(), deleteAll('')])
  redis.disconnect()
  queues.disconnect()
  objects.close()
  await database?.drop()
})

const put = (key: string, text: string) => objects.put(key, Buffer.from(text), { contentType: 'text/plain' })
const keysOf = async (prefix: string) =>
  (await collect(objects.list(prefix))).flatMap(page => page.map(({ key }) => key))
async function deleteAll(prefix: string): Promise<void> {
  await objects.deleteMany(await keysOf(prefix))
}

/** Runs a command and returns its exit code and output. */
const run = (words: readonly string[], env: Record<string, string> = {}, now = Date.now) =>
  runDirectoryCli(['backup', ...words], { env: { ...ENV, ...env }, now })

async function succeed(words: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await run(words, env)
  expect({ code, stderr }, words.join(' ')).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function create(env: Record<string, string> = {}): Promise<Manifest> {
  return JSON.parse(await succeed(['create', '--json'], env))
}

/** Returns the rows of each table, as number and sum of hashes. */
async function contentsOf(name: string): Promise<unknown> {
  const client = connectDatabase(clickhouseUrl, name)
  opened.push(() => client.close())
  const found = TABLES.map(async table => {
    const query = `SELECT '${table}' AS name, count() AS rows, sum(cityHash64(*)) AS sum FROM ${table}`
    return (await client.query({ query, format: 'JSONEachRow' })).json()
  })
  return Promise.all(found)
}

/** Returns how often the jobs of a queue that are stored in part were looked up. */
async function looks(): Promise<number> {
  return Number(/cmdstat_hkeys:calls=(\d+)/.exec(await queues.info('commandstats'))?.[1] ?? 0)
}

describe('backup create', () => {
  it('has all rows of the database that is configured, the directory and the list of the objects', async () => {
    const manifest = await create()
    const rows: Record<string, number> = {}
    for (const { table, rows: own } of manifest.clickhouse.shards.flatMap(({ tables }) => tables)) {
      rows[table] = (rows[table] ?? 0) + own
    }
    expect(rows).toMatchObject({ logs: 1_010, spans: 100, trace_buckets: 100, ingest_log: 0 })
    expect(rows).not.toHaveProperty('schema_migrations')
    expect(manifest).toMatchObject({
      directory: { workspaces: 1, records: 1, isEncrypted: false },
      clickhouse: { database: DATABASE },
      objects: { count: 2, bytes: REPLAY.length + 'releases/ws_1/r/manifest-1.json'.length },
    })
    expect(Number(manifest.clickhouse.days?.last) - Number(manifest.clickhouse.days?.first)).toBeGreaterThan(0)
    const all = rowsOf(manifest)
    expect(await succeed(['verify'])).toMatch(
      new RegExp(`^${manifest.name} is whole: directory of 1 record; ${all} rows; list of 2 objects\n$`),
    )
    // The directory alone is restored from it, too.
    const [newest] = (await runDirectoryCli(['directory', 'backups', '--json'], { env: ENV })).stdout.split('\n')
    expect(JSON.parse(newest ?? '')).toMatchObject({ name: manifest.directory.name })
    expect(await succeed(['list'])).toMatch(new RegExp(`^NAME .*\n${manifest.name} +\\S+ +1 +${all} +2 +no\n$`))
  })

  it.each([
    ['REDIS_URL', 'redis://127.0.0.1:1', 'REDIS_URL'],
    ['DIRECTORY_REDIS_URL', 'redis://127.0.0.1:1', 'DIRECTORY_REDIS_URL'],
    ['CLICKHOUSE_URL', clusterUrlOf('http://127.0.0.1:1'), 'CLICKHOUSE_URL'],
    ['CLICKHOUSE_DATABASE', 'another', 'CLICKHOUSE_DATABASE'],
    ['S3_BUCKET', 'another', 'S3_BUCKET'],
    ['S3_ENDPOINT', 'http://127.0.0.1:1', 'S3_ENDPOINT'],
  ])('ends with 1 and names %s when it leads nowhere', async (name, value, named) => {
    const ended = await run(['create'], { [name]: value })
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain(named)
    expect(await keysOf('backups/manifests/')).toEqual([])
  })

  it('encrypts the directory, and does not follow with a plain one unless the operator insists', async () => {
    const encrypted = await create({ DIRECTORY_BACKUP_KEY: KEY })
    expect(encrypted.directory.isEncrypted).toBe(true)
    const refused = await run(['create'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('DIRECTORY_BACKUP_KEY is not set') })
    expect(await keysOf('backups/manifests/')).toHaveLength(1)
    // Those of the directory alone count, too.
    await deleteAll('backups/')
    await runDirectoryCli(['directory', 'backup'], { env: { ...ENV, DIRECTORY_BACKUP_KEY: KEY } })
    expect(await run(['create'])).toMatchObject({ code: 1, stderr: expect.stringContaining('--plain') })
    const plain: Manifest = JSON.parse(await succeed(['create', '--plain', '--json']))
    expect(plain.directory.isEncrypted).toBe(false)
    const verified = await run(['verify'], { DIRECTORY_BACKUP_KEY: KEY })
    expect(verified).toMatchObject({ code: 11, stdout: expect.stringContaining('is not encrypted') })
  })

  it('waits for jobs that are stored in part, and makes no backup if no worker continues them', async () => {
    const { batchOf } = queueKeys('traces')
    await queues.hset(batchOf, 'job-1', 'batch-1')
    const tryFor = (waitMs: number) =>
      withInstallation(parseConfig(installationConfigSchema, ENV), undefined, pino({ level: 'silent' }), stores =>
        createBackup(stores, { disk: 'backups', isPlainWanted: false, now: Date.now, waitMs }),
      )
    const late = await tryFor(300)
    expect(late).toMatchObject({ outcome: 'stored_in_part', jobs: [{ queue: 'traces' }] })
    expect(await keysOf('backups/manifests/')).toEqual([])
    const created = tryFor(60_000)
    const before = await looks()
    await until('it has looked for such jobs, and waits', async () => (await looks()) > before + 4 * QUEUE_COUNT)
    // The batch was split: its job is in another one, and others have been named since.
    await queues.hset(batchOf, 'job-1', 'batch-2', 'job-2', 'batch-3')
    let hasEnded = false
    void created.then(() => {
      hasEnded = true
    })
    const looked = await looks()
    await until('it has looked again', async () => (await looks()) > looked + 4 * QUEUE_COUNT)
    expect(hasEnded).toBe(false)
    await queues.hdel(batchOf, 'job-1')
    expect(await created).toMatchObject({ outcome: 'created' })
  })

  it('that is killed leaves no backup, and the next one is whole', async () => {
    const proxied = await startHoldingProxy(s3.endpoint, /PUT \S+\/backups\/manifests\//)
    opened.push(proxied.close)
    const cli = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
    const child = spawn(process.execPath, [cli, 'backup', 'create'], {
      env: { ...process.env, ...ENV, S3_ENDPOINT: proxied.url },
      stdio: 'ignore',
    })
    await proxied.held
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await succeed(['list', '--json'])).toBe('')
    expect(await run(['verify'])).toMatchObject({ code: 3, stderr: 'there is no backup\n' })
    const { name } = await create()
    expect(await succeed(['verify', '--backup', name])).toContain('is whole')
  })
})

/** Creates a database without rows until the test ends, and returns its name. */
async function emptyCopy(): Promise<string> {
  const copy = await createTestDatabase(clickhouseUrl, COPY)
  opened.push(() => copy.drop())
  return COPY
}

/** Returns where the server keeps its backups on this machine. */
async function backupsPath(): Promise<string> {
  const [disk] = await database.rows<{ path: string }>("SELECT path FROM system.disks WHERE name = 'backups'")
  return disk?.path ?? ''
}

describe.skipIf(isCluster(clickhouseUrl))('backup verify', () => {
  it('names what is missing or was changed, and expects no object that has expired', async () => {
    const { name } = await create()
    const parts = join(await backupsPath(), name)
    const files = (await readdir(parts, { recursive: true })).sort()
    const [removed = '', damaged = ''] = files.filter(file => /\/(?:logs|spans)\/[^/]+\/data\.bin$/.test(file))
    expect([removed, damaged].map(file => file.split('/').at(-3))).toEqual(['logs', 'logs'])
    const bytes = await readFile(join(parts, damaged))
    await writeFile(join(parts, damaged), bytes.with(bytes.length - 1, 0x100 - (bytes.at(-1) ?? 0)))
    await objects.deleteMany([REPLAY])
    await put('releases/ws_1/r/manifest-1.json', 'RELEASES/ws_1/r/manifest-1.json')
    const ended = await run(['verify'])
    expect(ended.code).toBe(11)
    expect(ended.stdout.trim().split('\n').sort()).toEqual([
      expect.stringMatching(/^\S+ is not whole: 3 faults$/),
      'changed since the backup: releases/ws_1/r/manifest-1.json',
      expect.stringMatching(/^changed: logs, \d{8}_\S+: .*[Cc]hecksum/),
      `missing since the backup: ${REPLAY}`,
    ])
    const later = await run(['verify', '--json'], {}, () => Date.now() + 32 * DAY_MS)
    expect(JSON.parse(later.stdout)).toMatchObject({ faults: { length: 2 }, expiredObjects: 1 })
    // A damaged list and a damaged directory are faults, and no rows are restored from such a backup.
    const [list = ''] = await keysOf(`backups/data/${name}/objects/`)
    const [copy = ''] = await keysOf(`backups/data/${name}/directory/`)
    await put(list, 'no list')
    await put(copy, 'no directory')
    const worse = await run(['verify'])
    expect(worse.stdout).toContain(`changed: ${list}`)
    expect(worse.stdout).toMatch(/^\S+ was changed, or a part of it is missing$/m)
    const refused = await run(['restore'], { CLICKHOUSE_DATABASE: await emptyCopy() })
    expect(refused).toMatchObject({ code: 11, stderr: expect.stringMatching(/^nothing was restored:\n.* was changed/) })
  })

  it('names the shard of which a file or everything is gone', async () => {
    const { name } = await create()
    const parts = join(await backupsPath(), name)
    const [removed = ''] = (await readdir(parts, { recursive: true })).filter(file =>
      /\/logs\/.*\/data\.bin$/.test(file),
    )
    await rm(join(parts, removed))
    expect(await run(['verify'])).toMatchObject({ code: 11, stdout: expect.stringMatching(/logs|shard 1/) })
    await rm(parts, { recursive: true })
    const ended = await run(['verify'])
    expect(ended.code).toBe(11)
    expect(ended.stdout).toMatch(new RegExp(`^shard 1, ${name}/\\S+ on the disk backups: .*not found`, 'im'))
    const refused = await run(['restore'], { CLICKHOUSE_DATABASE: await emptyCopy() })
    expect(refused).toMatchObject({ code: 11, stderr: expect.stringContaining('shard 1') })
  })
})

describe('backup restore', () => {
  it('makes an empty database and an empty directory what they were, and replaces nothing', async () => {
    const before = await contentsOf(DATABASE)
    const manifest = await create()
    const env = { CLICKHOUSE_DATABASE: COPY }
    expect(await run(['restore'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('UNKNOWN_DATABASE') })
    expect(await run(['restore'])).toMatchObject({ code: 10, stderr: expect.stringContaining('has rows') })
    await emptyCopy()
    const worker = startHeartbeat(queues, ['traces'])
    await until('the worker counts as running', async () =>
      (await run(['restore'], env)).stderr.includes('workers run'),
    )
    await worker.stop()
    expect(JSON.parse(await succeed(['restore', '--json'], env))).toMatchObject({
      name: manifest.name,
      rows: rowsOf(manifest),
      directory: 'kept',
    })
    expect(await contentsOf(COPY)).toEqual(before)
    const again = await run(['restore'], env)
    expect(again).toMatchObject({ code: 10, stderr: expect.stringContaining('has rows') })
    expect(await contentsOf(COPY)).toEqual(before)
  })

  it('restores an empty directory with the rows, and needs the key that it was encrypted with', async () => {
    await create({ DIRECTORY_BACKUP_KEY: KEY })
    await redis.flushdb()
    const env = { CLICKHOUSE_DATABASE: await emptyCopy() }
    const refused = await run(['restore'], env)
    expect(refused).toMatchObject({ code: 11, stderr: expect.stringContaining('set DIRECTORY_BACKUP_KEY') })
    const restored = await succeed(['restore'], { ...env, DIRECTORY_BACKUP_KEY: KEY })
    expect(restored).toMatch(/^restored \S+: \d+ rows, all that were stored until 2.*\nthe directory was empty, and is/)
    expect(await directory.workspaceById('ws_1')).toBeDefined()
  })

  it.skipIf(isCluster(clickhouseUrl))('is not found without a backup, or in another bucket', async () => {
    expect(await run(['restore'])).toMatchObject({ code: 3, stderr: 'there is no backup\n' })
    await create()
    const elsewhere = await run(['restore', '--bucket', 'another'])
    expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('--bucket') })
    expect(await run(['verify', '--bucket', 'No'])).toMatchObject({ code: 2 })
  })
})

/** Returns an address of as many servers as the tests have. */
function clusterUrlOf(url: string): string {
  return isCluster(clickhouseUrl) ? `${url},${url.replace(':1', ':2')}` : url
}
