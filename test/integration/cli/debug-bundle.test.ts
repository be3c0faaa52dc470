import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { HIDDEN } from '../../../cli/bundle/settings.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { createDirectory, newId } from '../../../shared/directory/directory.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { createQueueLoads } from '../../../shared/queue/watch/queue-loads.ts'
import { createAdminServer } from '../../../shared/runtime/admin-server.ts'
import { createLogger } from '../../../shared/runtime/logger.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { SECRET_SETTINGS } from '../../../shared/runtime/secret-files.ts'
import { connectDatabase } from '../../support/cluster/connect.ts'
import { onOneServer } from '../../support/queue-on.ts'
import { SERVER_PASSWORD } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase } from '../../support/services/test-database.ts'

const run = promisify(execFile)
const services = sharedServices()
const redisUrl = `${services.redisUrl}/12`
const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
/** In everything that must not be in a bundle. */
const MARK = 'mark3d'
const database = await createTestDatabase(services.clickhouseUrl, `cli_bundle_${process.pid}`)
const clickhouse = connectDatabase(services.clickhouseUrl, database.name)
const redis = new Redis(redisUrl)
const workspaceId = newId('ws')
let directory: string
let adminUrl: string
let env: Record<string, string>

const admin = createAdminServer({
  registry: createMetrics('test').registry,
  isLive: () => true,
  isReady: () => 'redis is not connected',
  readQueues: createQueueLoads(onOneServer(redis), async () => undefined),
  logger: createLogger('test', 'fatal'),
})

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'debug-bundle-'))
  adminUrl = `http://127.0.0.1:${await admin.listen('127.0.0.1', 0)}`
  await redis.flushdb()
  const store = createDirectory(redis)
  await store.putWorkspace({ version: 1, id: workspaceId, slug: MARK, name: MARK, createdAt: new Date().toISOString() })
  await redis.set(
    directoryKeys.receiptSecret,
    JSON.stringify({ version: 1, secret: Buffer.from(MARK).toString('hex') }),
  )
  await redis.set(queueKeys('traces').payload('job'), `a payload with ${MARK}`)
  await clickhouse.command({
    query: `CREATE TABLE with_credentials (a UInt8) ENGINE = S3('http://127.0.0.1:1/bucket/a.tsv', '${MARK}', '${MARK}', 'TSV')`,
  })
  await clickhouse.command({ query: `SELECT toUInt8('${MARK}')` }).catch(() => undefined)
  const marked = [...SECRET_SETTINGS, ...HIDDEN, 'SWEEP_INTERVAL_MS', 'REDIS_DURABILITY'].map(name => [
    name,
    `${MARK}-${name}`,
  ])
  env = {
    ...Object.fromEntries(marked),
    PATH: process.env.PATH ?? '',
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: redisUrl,
    CLICKHOUSE_URL: services.clickhouseUrl,
    CLICKHOUSE_DATABASE: database.name,
    ...{ LOG_LEVEL: 'info', JOB_LOCK_MS: '2000', S3_ENDPOINT: `http://${MARK}:${MARK}@s3.example:9000/${MARK}` },
    HTTPS_PROXY: `http://${MARK}:${MARK}@proxy.example:3128`,
  }
  delete env.CLICKHOUSE_CLUSTER
})

afterAll(async () => {
  await admin.close()
  redis.disconnect()
  await clickhouse.close()
  await database.drop()
  await rm(directory, { recursive: true })
})

/** Makes a bundle as an operator does, and unpacks it. Returns its files by name, and what the command has printed. */
async function unpacked(args: readonly string[], settings: Record<string, string> = {}) {
  const file = join(directory, 'bundle.tar.gz')
  const argv = [MAIN, 'debug-bundle', '--output', file, ...args]
  const { stdout, stderr } = await run(process.execPath, argv, { env: { ...env, ...settings }, cwd: directory })
  const { mode, size } = await stat(file)
  expect((mode & 0o777).toString(8)).toBe('600')
  const into = await mkdtemp(join(directory, 'unpacked-'))
  await run('tar', ['-xzf', file, '-C', into])
  const names = (await readdir(into, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile())
  const files = new Map<string, string>()
  for (const { parentPath, name } of names) {
    const path = join(parentPath, name)
    files.set(path.slice(join(into, 'penstock-debug').length + 1), (await readFile(path)).toString('latin1'))
  }
  return { files, stdout, stderr, size }
}

it('has versions, settings, queues, stores and processes, and none of the secrets', async () => {
  const { files, stdout, stderr } = await unpacked(['--admin', adminUrl])
  expect({ stderr, missing: files.get('missing.txt') }).toEqual({ stderr: '', missing: undefined })
  expect(stdout).toMatch(/bundle\.tar\.gz: \d+ files, \d+ bytes\n$/)
  expect(JSON.parse(files.get('settings.json') ?? '')).toMatchObject({
    ...{ JOB_LOCK_MS: '2000', LOG_LEVEL: 'info', KEY_PEPPER: 'set', S3_ENDPOINT: 'http://s3.example:9000' },
    REDIS_URL: expect.stringMatching(/^redis:\/\/127\.0\.0\.1:\d+$/),
  })
  expect(JSON.parse(files.get('about.json') ?? '')).toMatchObject({
    version: expect.any(String),
    node: process.version,
  })
  expect(JSON.parse(files.get('directory.json') ?? '')).toEqual({
    workspaces: 1,
    first: [{ id: workspaceId, surfaces: 0 }],
  })
  expect(JSON.parse(files.get('queues.json') ?? '')).toHaveLength(QUEUES.length)
  expect(files.get('redis/queues-info.txt')).toContain('redis_version:')
  expect(JSON.parse(files.get('redis/directory-settings.json') ?? '')).toMatchObject({ appendfsync: 'always' })
  const tables = JSON.parse(files.get('clickhouse/tables.json') ?? '') as { name: string; definition: string }[]
  expect(tables.find(({ name }) => name === 'spans')?.definition).toContain('CREATE TABLE')
  expect(tables.find(({ name }) => name === 'with_credentials')?.definition).toContain('ENGINE = S3')
  expect(files.get('processes/1/readyz.txt')).toContain('status 503\nredis is not connected')
  expect(files.get('processes/1/metrics.txt')).toContain('penstock_ready{process="test"} 0')
  expect(JSON.parse(files.get('processes/1/queues.txt')?.split('\n')[1] ?? '')).toHaveProperty('traces')
  for (const [name, text] of files) {
    for (const secret of [
      MARK,
      SERVER_PASSWORD,
      Buffer.from(MARK).toString('hex'),
      Buffer.from(MARK).toString('base64'),
    ]) {
      expect(text.includes(secret), `${name} has ${secret}`).toBe(false)
    }
  }
})

it('is written with what answers, and names what does not', async () => {
  const away = 'http://127.0.0.1:1'
  const { files, stderr } = await unpacked(['--admin', away, adminUrl.replace('//', `//${MARK}:${MARK}@`)], {
    CLICKHOUSE_URL: `http://${MARK}:${MARK}@127.0.0.1:1`,
    DIRECTORY_REDIS_URL: `redis://:${MARK}@127.0.0.1:1`,
  })
  const missing = files.get('missing.txt') ?? ''
  for (const name of ['clickhouse/tables', 'directory', `processes/1 (${away})`, `processes/2 (${adminUrl})`]) {
    expect(missing).toContain(`${name}: `)
    expect(stderr).toContain(`missing: ${name}: `)
  }
  expect(JSON.parse(files.get('queues.json') ?? '')).toHaveLength(QUEUES.length)
  for (const text of [...files.values(), stderr]) expect(text).not.toContain(MARK)
})

it('goes to stdout where a container has no place for a file', async () => {
  const file = join(directory, 'piped.tar.gz')
  const argv = [MAIN, 'debug-bundle', '--output', '-']
  const { stdout } = await run(process.execPath, argv, { env, cwd: directory, encoding: 'buffer' })
  await writeFile(file, stdout)
  const { stdout: names } = await run('tar', ['-tzf', file])
  expect(names.split('\n')).toEqual(expect.arrayContaining(['penstock-debug/about.json', 'penstock-debug/queues.json']))
  expect(await readdir(directory)).not.toContainEqual(expect.stringMatching(/^penstock-debug-/))
})
