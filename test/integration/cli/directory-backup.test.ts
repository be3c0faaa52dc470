import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DAY_MS, MIB } from '../../../schemas/units.ts'
import { backUpDirectory } from '../../../shared/backup/back-up-directory.ts'
import { Backups } from '../../../shared/backup/backups.ts'
import { restoreDirectory } from '../../../shared/backup/restore-directory.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { exportDirectory } from '../../../shared/directory/export/export-directory.ts'
import { directoryKeys, isRecordKey, upkeepKeys } from '../../../shared/directory/record.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { connectForTransaction } from '../../../shared/queue/redis.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { backUpRegularly } from '../../../workers/back-up-regularly.ts'
import { createWorkerMetrics } from '../../../workers/metrics.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import { startHoldingProxy } from '../../support/holding-proxy.ts'
import { collect } from '../../support/oracles/collect.ts'
import { contentsOf } from '../../support/oracles/contents-of.ts'
import { createDatabase, startApi } from '../../support/services/api.ts'
import { issueKey, startEdge } from '../../support/services/edge.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'
import { aSurface, aWorkspace, aWorkspaceKey } from '../../support/workspaces/directory-records.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

const services = sharedServices()
const { s3 } = services
const [directoryUrl, queuesUrl] = [`${services.redisUrl}/6`, `${services.redisUrl}/9`]
const KEY = 'a key of the operator, with over 32 bytes'
const redis = new Redis(directoryUrl)
const store = createDirectory(redis)
const objects = createObjectStore({ ...s3, requestTimeoutMs: 10_000 })
const backups = new Backups({ objects, key: undefined, now: Date.now })
const logger = pino({ level: 'silent' })
const opened: (() => unknown)[] = []

const S3_ENV = s3Settings(s3)
const ENV = { DIRECTORY_REDIS_URL: directoryUrl, ...S3_ENV }

beforeEach(async () => {
  await Promise.all([redis.flushdb(), withDatabase(queuesUrl, queues => queues.flushdb())])
  await deleteAll('directory-backups/')
})
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})
afterAll(async () => {
  await redis.flushdb()
  await deleteAll('directory-backups/')
  redis.disconnect()
  objects.close()
})

async function withDatabase<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const connection = new Redis(url)
  return work(connection).finally(() => connection.disconnect())
}

const keysOf = async (prefix: string) =>
  (await collect(objects.list(prefix))).flatMap(page => page.map(({ key }) => key))
async function deleteAll(prefix: string): Promise<void> {
  await objects.deleteMany(await keysOf(prefix))
}

const userOf = (id: string) =>
  ({ version: 1, id, email: null, name: 'Anna', createdAt: new Date().toISOString() }) as const

/** Stores a workspace with members, surfaces, keys and releases, and returns its keys. */
async function fill(): Promise<{ publicKey: string; secretKey: string }> {
  await store.putWorkspace(aWorkspace({ id: 'ws_1', slug: 'acme' }))
  await store.putSurface(aSurface({ id: 'srf_1' }))
  await store.createWorkspaceKey(aWorkspaceKey({ createdAt: new Date().toISOString() }))
  await store.putUser(userOf('user_1'))
  await store.putMember({ version: 1, workspaceId: 'ws_1', userId: 'user_1', permissions: ['org:findings:read'] })
  const merge = { into: `fnd_${'a'.repeat(26)}`, findingIds: [`fnd_${'b'.repeat(26)}`] }
  await store.mergeFindings('ws_1', async () => merge, { by: null, now: Date.now() })
  const releases = createReleaseStore(redis)
  await registerRelease(releases, { slug: 'rel_unfinished' })
  await registerRelease(releases, { slug: 'rel_finished' })
  const counters = { sourceMapCount: 1, sourceFileCount: 1, completedAt: new Date().toISOString() }
  await releases.replaceManifest('ws_1', 'rel_finished', { version: 1, sequence: 7, objectKey: 'm', ...counters })
  await releases.addStoredMaps('ws_1', ['ab'.repeat(32)])
  return {
    publicKey: await issueKey(store),
    secretKey: await issueKey(store, { kind: 'secret', scopes: ['release:write'] }),
  }
}

/** Runs a command and returns its exit code and output. */
const run = (words: readonly string[], env: Record<string, string> = {}) =>
  runDirectoryCli(['directory', ...words], { env: { ...ENV, ...env } })

async function succeed(words: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await run(words, env)
  expect({ code, stderr }, words.join(' ')).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function holdingProxy(target: string, head: RegExp) {
  const proxied = await startHoldingProxy(target, head)
  opened.push(proxied.close)
  return proxied
}

const names = async () => (await backups.list()).map(({ name }) => name)

async function backUp(env: Record<string, string> = {}): Promise<string> {
  return JSON.parse(await succeed(['backup', '--json'], env)).name
}

const records = async () =>
  Object.fromEntries(Object.entries(await contentsOf(redis)).filter(([key]) => isRecordKey(key)))

describe('a backup of the directory', () => {
  it('restores all of it, with its indexes, into an empty directory', async () => {
    await fill()
    await redis.set(directoryKeys.receiptSecret, JSON.stringify({ version: 1, secret: 'cd'.repeat(32) }))
    const before = await records()
    const name = await backUp()
    await redis.flushdb()
    const text = await succeed(['restore'])
    expect(text).toMatch(new RegExp(`^restored ${name}, the directory of \\d{4}-.*:\n`))
    for (const line of [/ workspace +1\n/, / surface-key +2\n/, / release +2\n/, / receipt-secret +1\n/]) {
      expect(text).toMatch(line)
    }
    expect(await records()).toEqual(before)
  })

  it('is listed with what it contains, the newest first, and the oldest are removed', async () => {
    await fill()
    const made = [await backUp(), await backUp(), await backUp()].reverse()
    const listed = (await succeed(['backups', '--json']))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(listed.map(({ name }) => name)).toEqual(made)
    expect(listed[0]).toMatchObject({ workspaces: 1, records: 13, isEncrypted: false })
    expect(await succeed(['backups'])).toMatch(/^NAME +WORKSPACES +RECORDS +BYTES +ENCRYPTED\n/)
    await backups.prune(2)
    expect(await names()).toEqual(made.slice(0, 2))
  })

  it('restores nothing into a directory that is not empty, unless its records may be replaced', async () => {
    await fill()
    const before = await records()
    const name = await backUp()
    await redis.del(directoryKeys.surface('ws_1', 'srf_1'))
    await store.putWorkspace(aWorkspace({ id: 'ws_2', slug: 'later' }))
    const changed = await records()
    expect(await run(['restore', '--backup', name])).toMatchObject({
      code: 10,
      stderr: expect.stringContaining('the directory is not empty'),
    })
    expect(await records()).toEqual(changed)
    await succeed(['restore', '--backup', name, '--replace'])
    expect(await records()).toEqual(before)
  })

  it.each([
    [
      'of which a byte was changed',
      (body: Buffer) => body.with(body.length >> 1, 0x100 - (body.at(body.length >> 1) ?? 0)),
    ],
    ['that was cut off', (body: Buffer) => body.subarray(0, -1)],
    ['that was emptied', () => Buffer.alloc(0)],
  ])('%s restores nothing, with or without a key', async (_, damage) => {
    await fill()
    await backUp()
    await backUp({ DIRECTORY_BACKUP_KEY: KEY })
    await redis.flushdb()
    for (const { key, name, isEncrypted } of await backups.list()) {
      const { body } = (await objects.get(key, MIB)) ?? {}
      await objects.put(key, Buffer.from(damage(body ?? Buffer.alloc(0))), { contentType: 'a/b' })
      const env: Record<string, string> = isEncrypted ? { DIRECTORY_BACKUP_KEY: KEY } : {}
      const ended = await run(['restore', '--backup', name], env)
      expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(`${name} was changed`) })
      expect(await redis.dbsize()).toBe(0)
    }
  })

  it('restores nothing if it ends within its lines or the directory changes meanwhile', async () => {
    await fill()
    const [name, before] = [await backUp(), await records()]
    const lines = (await succeed(['export'])).trim().split('\n')
    const cut = async function* () {
      for (const line of lines.slice(0, 5)) yield JSON.parse(line)
    }
    await backups.write(cut(), async () => {})
    await redis.flushdb()
    expect(await run(['restore'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the last line is missing'),
    })
    expect(await redis.dbsize()).toBe(0)

    // A user is created between the first look and the transaction.
    const proxied = await holdingProxy(s3.endpoint, /GET \S+\/directory-backups\/2/)
    const restoring = run(['restore', '--backup', name], { S3_ENDPOINT: proxied.url })
    await proxied.held
    await store.putUser(userOf('user_2'))
    const changed = await records()
    proxied.release()
    expect(await restoring).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was restored') })
    expect(await records()).toEqual(changed)
    await succeed(['restore', '--backup', name, '--replace'])
    expect(await records()).toEqual(before)
  })

  it('restores nothing if a release or surface is added meanwhile, and leaves it in its index', async () => {
    await fill()
    await backUp()
    const releases = createReleaseStore(redis)
    const additions = [
      () => registerRelease(releases, { slug: 'rel_meanwhile' }),
      () => store.putSurface(aSurface({ id: 'srf_2' })),
    ]
    for (const add of additions) {
      const proxied = await holdingProxy(s3.endpoint, /GET \S+\/directory-backups\/2/)
      const restoring = run(['restore', '--replace'], { S3_ENDPOINT: proxied.url })
      await proxied.held
      await add()
      const changed = await records()
      proxied.release()
      expect(await restoring).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was restored') })
      expect(await records()).toEqual(changed)
    }
    const listed = (await releases.releases('ws_1', { limit: 10 })).releases.map(({ release }) => release.slug)
    expect(listed).toContain('rel_meanwhile')
  })

  it('restores nothing if the connection to Redis is lost between MULTI and EXEC', async () => {
    await fill()
    await backUp()
    await redis.del(directoryKeys.surface('ws_1', 'srf_1'))
    const changed = await records()
    const [backup] = await backups.list()
    if (backup === undefined) throw new Error('there is no backup')
    const own = connectForTransaction(directoryUrl, 10_000, logger)
    opened.push(() => own.disconnect())
    await once(own, 'ready')
    const [id, hasEnded] = [await own.client('ID'), once(own, 'end')]
    const call = own.call.bind(own)
    // The first command within the transaction.
    const kill = vi.spyOn(own, 'call').mockImplementationOnce(async (name, ...words) => {
      await redis.client('KILL', 'ID', id)
      await hasEnded
      return call(name, ...(words as string[]))
    })
    await expect(restoreDirectory({ redis: own, backups, now: Date.now }, backup, { replace: true })).rejects.toThrow(
      'the connection to Redis was lost: nothing was restored',
    )
    expect(kill).toHaveBeenCalled()
    expect(await records()).toEqual(changed)
  })

  it('is not made of an empty directory, nor of one that is emptied meanwhile (renew-lease.lua)', async () => {
    expect(await run(['backup'])).toMatchObject({ code: 1, stderr: expect.stringContaining('no workspace') })
    await fill()
    const name = await backUp()
    const emptied: Directory = {
      ...store,
      async *workspaces() {
        yield* store.workspaces()
        await redis.flushdb()
      },
    }
    await expect(backUpDirectory({ redis, store: emptied, backups })).rejects.toThrow('the lease was lost')
    expect(await names()).toEqual([name])
  })

  it('that is killed while it is stored leaves the former one the newest, and nothing else', async () => {
    await fill()
    const name = await backUp()
    await store.putWorkspace(aWorkspace({ id: 'ws_2', slug: 'later' }))
    const proxied = await holdingProxy(s3.endpoint, /PUT \S+\/directory-backups\/2/)
    const cli = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
    const child = spawn(process.execPath, [cli, 'directory', 'backup'], {
      env: { ...process.env, ...ENV, S3_ENDPOINT: proxied.url },
      stdio: 'ignore',
    })
    await proxied.held
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await keysOf('directory-backups/')).toHaveLength(1)
    await redis.flushdb()
    await succeed(['restore', '--backup', name])
    expect(await store.workspaceById('ws_2')).toBeUndefined()
    expect(await store.workspaceById('ws_1')).toBeDefined()
  })

  it('that was copied without what is stored beside its bytes is listed and restored', async () => {
    await fill()
    const [name, before] = [await backUp(), await records()]
    const [{ key } = { key: '' }] = await backups.list()
    await objects.copy(key, key, { contentType: 'application/gzip' })
    expect(await succeed(['backups'])).toMatch(new RegExp(`\n${name} +- +- +\\d+ +no\n`))
    await redis.flushdb()
    await succeed(['restore'])
    expect(await records()).toEqual(before)
  })

  it('is encrypted with the key of the operator, and only one with this key is restored', async () => {
    await fill()
    const plain = await backUp()
    const name = await backUp({ DIRECTORY_BACKUP_KEY: KEY })
    const [{ key: encrypted } = { key: '' }] = await backups.list()
    const sealed = (await objects.get(encrypted, MIB))?.body ?? Buffer.alloc(0)
    expect(sealed.subarray(0, 2)).not.toEqual(Buffer.from([0x1f, 0x8b]))
    // A backup of before, given the time of a later one.
    const later = encrypted.replace(/directory-backups\/\d{4}/, 'directory-backups/2020')
    await objects.put(later, sealed, { contentType: 'a/b' })
    const renamed = name.replace(/^\d{4}/, '2020')
    await redis.flushdb()
    for (const [backup, key, message] of [
      [name, '', /set DIRECTORY_BACKUP_KEY/],
      [name, 'another key of an operator, with over 32 bytes', /cannot be decrypted/],
      [renamed, KEY, /cannot be decrypted/],
      // Who can write to the bucket could else have keys of their own restored.
      [plain, KEY, /is not encrypted/],
    ] as const) {
      const ended = await run(['restore', '--backup', backup], { DIRECTORY_BACKUP_KEY: key })
      expect(ended).toMatchObject({ code: 1, stderr: expect.stringMatching(message) })
      expect(await redis.dbsize()).toBe(0)
    }
    await succeed(['restore', '--backup', name], { DIRECTORY_BACKUP_KEY: KEY })
    expect(await store.workspaceById('ws_1')).toBeDefined()
  })

  it('is not made in plain text after an encrypted one, unless the operator insists', async () => {
    await fill()
    const encrypted = await backUp({ DIRECTORY_BACKUP_KEY: KEY })
    const refused = await run(['backup'])
    expect(refused).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('insist on a backup in plain'),
    })
    expect(refused.stderr).toContain(encrypted)
    expect(await names()).toEqual([encrypted])
    const plain = JSON.parse(await succeed(['backup', '--plain', '--json'])).name
    expect(await names()).toEqual([plain, encrypted])
    // The newest one is plain now.
    await backUp()
    const ended = await run(['restore', '--replace'], { DIRECTORY_BACKUP_KEY: KEY })
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('name an encrypted backup') })
    await succeed(['restore', '--replace', '--backup', encrypted], { DIRECTORY_BACKUP_KEY: KEY })
  })

  it('that is unknown is not found', async () => {
    expect(await run(['restore'])).toMatchObject({ code: 3, stderr: 'there is no backup\n' })
    expect(await run(['restore', '--backup', 'x'])).toMatchObject({ code: 3, stderr: 'there is no backup "x"\n' })
  })
})

it('a restored directory serves the keys and receipts of before, while edge and API run', async () => {
  const { publicKey, secretKey } = await fill()
  const database = `backup_${process.pid}`
  const clickhouse = await createDatabase(services.clickhouseUrl, database)
  opened.push(() => clickhouse.close())
  const edge = await startEdge(queuesUrl, ENV)
  opened.push(() => edge.stop())
  const api = await startApi({ ...services, redisUrl: queuesUrl }, database, ENV)
  opened.push(() => api.stop())
  const send = (key: string) =>
    fetch(`${edge.baseUrl}/v3/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-service-public-key': key },
      body: JSON.stringify({ sessionId: 'session-1' }),
    })
  const register = () =>
    fetch(`${edge.baseUrl}/v3/releases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secretKey}` },
      body: JSON.stringify({ version: '1.2.3' }),
    })
  const receipt = async (id: string) =>
    (await fetch(`${api.baseUrl}/v3/receipts/${id}`, { headers: { 'x-service-public-key': publicKey } })).status
  const sent = await send(publicKey)
  expect(sent.status).toBe(200)
  const id = sent.headers.get('x-receipt-id') ?? ''
  expect(await receipt(id)).toBe(200)
  await backUp()

  await redis.flushdb()
  await until('the edge accepts the key no more', async () => (await send(publicKey)).status !== 200, {
    deadlineMs: 30_000,
  })
  await succeed(['restore'])
  await until('the edge accepts the key again', async () => (await send(publicKey)).status === 200, {
    deadlineMs: 2_000,
  })
  expect((await register()).status).toBe(200)
  expect(await receipt(id)).toBe(200)
  const again = (await send(publicKey)).headers.get('x-receipt-id') ?? ''
  expect(await receipt(again)).toBe(200)
}, 60_000)

describe('regular backups', () => {
  function start(settings: { intervalMs: number; keep: number }, s3Endpoint = s3.endpoint) {
    const own = createObjectStore({ ...s3, endpoint: s3Endpoint, requestTimeoutMs: 1_000 })
    const metrics = createMetrics('test')
    const running = backUpRegularly(
      {
        ...{ redis, store, logger, metrics: createWorkerMetrics(metrics) },
        backups: new Backups({ objects: own, key: undefined, now: Date.now }),
      },
      { ...settings, checkEveryMs: 50 },
    )
    opened.push(
      () => own.close(),
      () => running.stop(),
    )
    return async (name: string) => {
      const line = (await metrics.registry.metrics())
        .split('\n')
        .find(text => text.startsWith(`${name} `) || text.startsWith(`${name}{`))
      return line === undefined ? undefined : Number(line.split(' ').at(-1)?.replace('+Inf', 'Infinity'))
    }
  }

  it('are made by one of many workers when they are due, and the oldest are removed', async () => {
    const readers = Array.from({ length: 3 }, () => start({ intervalMs: 600_000, keep: 3 }))
    const age = readers[0] as (name: string) => Promise<number | undefined>
    await until(
      'the age is known',
      async () => (await age('penstock_directory_backup_age_seconds')) === Number.POSITIVE_INFINITY,
    )
    // A directory without a workspace is not backed up, and this does not count as a failure.
    expect(await age('penstock_directory_backup_failures_total')).toBe(0)
    await fill()
    await until('there is a backup', async () => (await names()).length > 0)
    await until('all workers have seen it', async () => {
      const ages = await Promise.all(readers.map(read => read('penstock_directory_backup_age_seconds')))
      return ages.every(seconds => seconds !== undefined && seconds < 60)
    })
    await until('the lease is free', async () => (await redis.exists(upkeepKeys.lease('backup'))) === 0)
    const [first, ...more] = await names()
    expect(more).toEqual([])
    start({ intervalMs: 1, keep: 2 })
    await until('the first one was removed', async () => {
      const [, , ...others] = await names()
      return others.length === 0 && !(await names()).includes(first ?? '')
    })
  })

  it('are made although there is one from a clock that was ahead, which is removed first', async () => {
    await fill()
    const now = () => Date.now() + DAY_MS
    const ofTomorrow = new Backups({ objects, key: undefined, now })
    const { name } = await ofTomorrow.write(exportDirectory({ redis, store }), async () => {})
    expect(await names()).toEqual([name])
    start({ intervalMs: 600_000, keep: 1 })
    await until('it was replaced', async () => {
      const [newest, ...others] = await names()
      return newest !== undefined && newest !== name && others.length === 0
    })
  })

  it('are not made of a directory that was lost, which counts as a failure', async () => {
    await fill()
    const name = await backUp()
    await redis.flushdb()
    const read = start({ intervalMs: 1, keep: 2 })
    await until('it has failed', async () => ((await read('penstock_directory_backup_failures_total')) ?? 0) >= 2)
    expect(await names()).toEqual([name])
  })

  it('are not made in plain text after an encrypted one, which counts as a failure', async () => {
    await fill()
    const encrypted = await backUp({ DIRECTORY_BACKUP_KEY: KEY })
    const read = start({ intervalMs: 1, keep: 2 })
    await until('it has failed', async () => ((await read('penstock_directory_backup_failures_total')) ?? 0) >= 2)
    expect(await names()).toEqual([encrypted])
  })

  it('fail while the object store is unavailable, and are made when it is back', async () => {
    await fill()
    const proxied = await holdingProxy(s3.endpoint, /PUT \S+\/directory-backups\/2/)
    const read = start({ intervalMs: 600_000, keep: 2 }, proxied.url)
    await proxied.held
    await until('it has failed', async () => ((await read('penstock_directory_backup_failures_total')) ?? 0) >= 1)
    proxied.release()
    await until('there is a backup', async () => (await names()).length === 1)
  })
})
