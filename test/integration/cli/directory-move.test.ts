import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { QUEUES } from '../../../schemas/queues/names.ts'
import type { Alerts } from '../../../schemas/records/alerts.ts'
import type { FindingEntry } from '../../../schemas/records/change.ts'
import type { Dropping } from '../../../schemas/records/dropping.ts'
import type { Erasure } from '../../../schemas/records/erasure.ts'
import type { FindingRules } from '../../../schemas/records/finding-rules.ts'
import type { FindingWork } from '../../../schemas/records/finding-work.ts'
import type { Scrubbing, ScrubbingRule } from '../../../schemas/records/scrubbing.ts'
import { createDirectory, type Directory, newId } from '../../../shared/directory/directory.ts'
import { directoryKeys, upkeepKeys } from '../../../shared/directory/record.ts'
import { createReleaseStore, releaseKeys } from '../../../shared/directory/release-store.ts'
import { createReleaseClient, entryOf, mapOf } from '../../support/clients/release-client.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import { contentsOf } from '../../support/oracles/contents-of.ts'
import { call, createDatabase, startApi, type TestApi } from '../../support/services/api.ts'
import { startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { s3Settings } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { makeTenant, type Tenant } from '../../support/workspaces/tenant.ts'

/**
 * Database numbers in Redis of two installations, each with separate databases for directory and queues. They are emptied
 * first.
 */
const REDIS = { from: { directory: 1, queues: 2 }, to: { directory: 3, queues: 4 } }
const DATABASE = `control_move_${process.pid}`
const services = sharedServices()
const urlOf = (database: number) => `${services.redisUrl}/${database}`

interface Installation {
  readonly edge: TestEdge
  readonly api: TestApi
  readonly pools: TestPools
  readonly directory: Redis
  stop(): Promise<void>
}

/** Edge, API and workers; both installations share the object store and ClickHouse. */
async function install(databases: { directory: number; queues: number }): Promise<Installation> {
  const directory = new Redis(urlOf(databases.directory))
  const [redisUrl, directoryRedisUrl] = [urlOf(databases.queues), urlOf(databases.directory)]
  const settings = {
    DIRECTORY_REDIS_URL: directoryRedisUrl,
    ...s3Settings(services.s3),
  }
  const pools = startPools(QUEUES, { ...services, redisUrl, directoryRedisUrl }, DATABASE)
  const edge = await startEdge(redisUrl, settings)
  const api = await startApi({ ...services, redisUrl }, DATABASE, settings)
  return {
    edge,
    api,
    pools,
    directory,
    async stop() {
      await edge.stop()
      await api.stop()
      await pools.stop()
      directory.disconnect()
    },
  }
}

let clickhouse: ClickHouseClient
let from: Installation
let to: Installation
let tenant: Tenant
/** Key created by this request, which is sent again to the new installation. */
const keyRequest = {
  idempotencyKey: randomUUID(),
  name: 'deploy',
  scopes: ['org:surfaces:read'],
  secondsUntilExpiration: 3_600,
}
let keyMade: unknown
let exported: string
let before: Contents
/** Key names in the directory after the import, before a process is started on it. */
let after: Contents

beforeAll(async () => {
  for (const database of Object.values(REDIS).flatMap(Object.values))
    await withRedis(database, redis => redis.flushdb())
  clickhouse = await createDatabase(services.clickhouseUrl, DATABASE)
  from = await install(REDIS.from)
  tenant = await fill(from)
  exported = await run(REDIS.from.directory, ['directory', 'export'])
  await run(REDIS.to.directory, ['directory', 'import'], exported)
  before = await withRedis(REDIS.from.directory, readContents)
  after = await withRedis(REDIS.to.directory, readContents)
  to = await install(REDIS.to)
})
afterAll(async () => {
  await from?.stop()
  await to?.stop()
  await clickhouse?.close()
})

/** Fills the directory with operations of the service and commands of the operator: a tenant with every kind of record. */
async function fill({ edge, api, directory }: Installation): Promise<Tenant> {
  const deps = { redisUrl: urlOf(REDIS.from.directory), apiUrl: api.baseUrl, edgeUrl: edge.baseUrl }
  const made = await makeTenant({ ...deps, signWorkloadToken: async () => '' })
  const { slug } = made.things
  const bearer = made.credentials.sessionToken
  const created = await call(api.baseUrl, `POST /v3/workspaces/${slug}/api-keys`, { bearer, body: keyRequest })
  expect(created.status).toBe(201)
  keyMade = created.body
  await workOnFindings(createDirectory(directory), made.workspaceId)
  await protectPersons(createDirectory(directory), made.workspaceId)
  const surface = await createDirectory(directory).surfaces(made.workspaceId, { limit: 1 })
  for (const words of [
    ['user', 'create', '--id', 'user_1', '--name', 'Anna'],
    ['member', 'add', '--workspace', slug, '--user', 'user_1', '--all'],
    ['surface', 'delete', '--workspace', slug, '--surface', surface[0]?.id ?? ''],
  ]) {
    await run(REDIS.from.directory, words)
  }
  return made
}

const findingIdOf = (letter: string) => `fnd_${letter.repeat(26)}`

/** Resolves a finding, comments on it, ignores another one, merges two into the first, and splits one of them again. */
async function workOnFindings(directory: Directory, workspaceId: string): Promise<void> {
  const [createdAt, by] = [new Date().toISOString(), { userId: 'user_1', apiKeyId: null }]
  const change = (letter: string, status: Partial<FindingWork>, entries: readonly FindingEntry[]) => {
    const findingId = findingIdOf(letter)
    const work = {
      ...({ version: 1, workspaceId, findingId, status: 'open', statusAt: createdAt, assignee: null } as const),
      ...{ activityBytes: 0, changedAt: createdAt, ...status },
    }
    return directory.changeFinding({ workspaceId, findingId }, createdAt, () => ({ work, entries }))
  }
  await change('a', { status: 'resolved', knownVersions: ['a'] }, [
    { id: newId('act'), createdAt, by, action: 'resolved' },
    { id: newId('act'), createdAt, by, action: 'commented', text: 'é' },
  ])
  await change('b', { status: 'ignored', occurrences: 3, countedBefore: 1 }, [])
  const merge = { into: findingIdOf('a'), findingIds: [findingIdOf('c'), findingIdOf('d')] }
  const author = { by, now: Date.parse(createdAt) }
  await directory.mergeFindings(workspaceId, async () => merge, author)
  const rule = { name: 'carts', type: 'TypeError', fingerprint: 'cart' }
  const rules = await directory.replaceFindingRules({ workspaceId, revision: 0, rules: [rule] }, author)
  const { revision } = rules as FindingRules
  await directory.replaceFindingRules({ workspaceId, revision, rules: [] }, author)
  await directory.splitFinding({ workspaceId, findingId: findingIdOf('d') }, findingIdOf('a'), author)
}

/** Replaces the rules of scrubbing and dropping twice, those of alerts again, and stores an erasure that waits for the night. */
async function protectPersons(directory: Directory, workspaceId: string): Promise<void> {
  const author = { by: null, now: Date.now() }
  const scrubbing: ScrubbingRule = { name: 'people', keys: ['iban'], action: 'mask' }
  const first = await directory.replaceScrubbing({ workspaceId, revision: 0, rules: [scrubbing] }, author)
  const { revision } = first as Scrubbing
  await directory.replaceScrubbing({ workspaceId, revision, rules: [] }, author)
  const drops = [{ name: 'health checks', names: ['GET /health'], keep: 0 }]
  const dropping = await directory.replaceDropping({ workspaceId, revision: 0, rules: drops }, author)
  const { revision: before } = dropping as Dropping
  await directory.replaceDropping({ workspaceId, revision: before, rules: [] }, author)
  const alerts = (await directory.alerts(workspaceId)) as Alerts
  await directory.replaceAlerts(
    { workspaceId, revision: alerts.revision, receivers: alerts.receivers, rules: [] },
    author,
  )
  const subject = { kind: 'session', sessionId: 'waits' } as const
  const erasure = (await directory.createErasure({ workspaceId, subject, now: Date.now() })) as Erasure
  await directory.putErasure({ ...erasure, state: 'waiting_for_rewrite' })
}

/** Runs a command that must succeed and returns its output. */
async function run(database: number, words: readonly string[], stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await runDirectoryCli(words, {
    env: { DIRECTORY_REDIS_URL: urlOf(database) },
    stdin,
  })
  expect({ code, stderr }, words.join(' ')).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function withRedis<T>(database: number, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(urlOf(database))
  try {
    return await work(redis)
  } finally {
    redis.disconnect()
  }
}

type Contents = Awaited<ReturnType<typeof readContents>>

async function readContents(redis: Redis) {
  const values = await contentsOf(redis)
  const names = Object.keys(values)
  const leftMs = new Map<string, number>()
  for (const name of names) leftMs.set(name, await redis.pttl(name))
  return { names, values, leftMs }
}

type KeyName = string | ((...parts: string[]) => string)

/** Every family of key names in the directory, by its pattern. */
const FAMILIES = Object.entries({ ...directoryKeys, ...releaseKeys } as Record<string, KeyName>).map(([name, key]) => {
  const pattern = typeof key === 'string' ? key : key(...Array<string>(key.length).fill('*'))
  return { name, pattern: new RegExp(`^${pattern.replaceAll('*', '[^:]+')}$`) }
})

it('the directory contains only keys of known families, some of each, and all of them are moved', () => {
  // The versions of merges tell a process that another one has merged findings, and an import notes itself which workspaces are
  // grouped again, so that neither is moved. Occasions of alerts wait for seconds, and deliveries are of one installation.
  const { mergeVersions, ungrouped, queuesSeen, occasions } = upkeepKeys
  const own: readonly string[] = [mergeVersions, ungrouped, queuesSeen, occasions]
  const isDelivery = (name: string) => name.startsWith(`${upkeepKeys.lease('deliveries')}:`)
  const names = before.names.filter(name => !own.includes(name) && !isDelivery(name))
  const unknown = names.filter(name => !FAMILIES.some(({ pattern }) => pattern.test(name)))
  expect(unknown, 'keys that neither directoryKeys nor releaseKeys name').toEqual([])
  const unused = FAMILIES.filter(({ pattern }) => !names.some(name => pattern.test(name)))
  expect(unused, 'names of keys that nothing here has written').toEqual([])

  // The order in which surfaces were deleted is not moved: nothing but forgetting the oldest of 10,000 depends on it.
  // Nor are earlier rules, which repetitions of batches use, and the record of the installation, which the other one has too.
  const moved = names.filter(
    name =>
      !/:(deleted-surfaces|earlier-finding-rules|earlier-scrubbing|earlier-dropping|earlier-alerts|installation)$/.test(
        name,
      ),
  )
  const { [upkeepKeys.ungrouped]: _, ...values } = after.values
  expect(values).toEqual(Object.fromEntries(moved.map(name => [name, before.values[name]])))
  for (const name of moved) {
    const [left, leftBefore] = [after.leftMs.get(name) ?? 0, before.leftMs.get(name) ?? 0]
    expect(Math.abs(left - leftBefore), name).toBeLessThan(30_000)
  }
  // A public key is readable, as pages have it.
  const { publicKey, ...secrets } = tenant.credentials
  expect(exported).toContain(publicKey)
  for (const secret of Object.values(secrets)) if (secret !== '') expect(exported).not.toContain(secret)
})

it('keys, lists, releases and repeated requests behave after the move as before', async () => {
  const { things, credentials } = tenant
  const { slug, releaseSlug } = things
  for (const [operation, bearer] of [
    ['GET /v3/surfaces', credentials.workspaceKey],
    ['GET /v3/surfaces', credentials.sessionToken],
    [`GET /v3/surfaces/${things.surfaceId}/keys`, credentials.sessionToken],
    [`GET /v3/workspaces/${slug}/api-keys`, credentials.sessionToken],
    ['GET /v3/releases', credentials.sessionToken],
    [`GET /v3/releases/${releaseSlug}`, credentials.sessionToken],
  ] as const) {
    const [before, after] = [
      await call(from.api.baseUrl, operation, { bearer }),
      await call(to.api.baseUrl, operation, { bearer }),
    ]
    expect(before.status, operation).toBe(200)
    expect({ status: after.status, body: after.body }, operation).toEqual({ status: 200, body: before.body })
  }
  const again = { bearer: credentials.sessionToken, body: keyRequest }
  const repeated = await call(to.api.baseUrl, `POST /v3/workspaces/${slug}/api-keys`, again)
  expect({ status: repeated.status, body: repeated.body }).toEqual({ status: 201, body: keyMade })
})

it('a build continues after the move: maps are known, and its next completion follows the last one', async () => {
  const { things, credentials, workspaceId } = tenant
  const { releaseSlug } = things
  const client = createReleaseClient(to.edge.baseUrl, credentials.secretKey)
  const manifest = () => createReleaseStore(to.directory).manifest(workspaceId, releaseSlug)
  const held = await manifest()
  const map = { path: 'next.js.map', bytes: mapOf('next') }
  const [file] = await client.sign(releaseSlug, [map], [things.mapHash])
  expect(file).toMatchObject({ alreadyUploaded: true })
  const completed = await client.complete(releaseSlug, [entryOf(map, { hash: things.mapHash })], 1)
  expect(completed).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
  const next = await manifest()
  expect(next).toMatchObject({ sourceMapCount: 1, sourceFileCount: 1 })
  expect(next?.sequence).toBeGreaterThan(held?.sequence ?? 0)
})
