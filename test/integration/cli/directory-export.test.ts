import { createHash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PERMISSIONS } from '../../../schemas/records/directory.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { walkSortedMaps } from '../../../shared/directory/export/export-directory.ts'
import { newCreation } from '../../../shared/directory/new-creation.ts'
import { ensureReceiptSecret, readReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { createReleaseStore, RELEASES_MAX, releaseKeys } from '../../../shared/directory/release-store.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { releaseSlugOf } from '../../../shared/ids/release-slug.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import { collect } from '../../support/oracles/collect.ts'
import { contentsOf } from '../../support/oracles/contents-of.ts'
import { startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { aSurface, aSurfaceKey, aWorkspace, aWorkspaceKey } from '../../support/workspaces/directory-records.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

/** Database numbers in Redis; both databases are emptied before each test. */
const [FROM, TO] = [7, 8]
const AT = '2026-08-01T12:00:00.000Z'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

let from: Redis
let to: Redis
const urlOf = (database: number) => `${sharedServices().redisUrl}/${database}`

beforeAll(() => {
  from = new Redis(urlOf(FROM))
  to = new Redis(urlOf(TO))
})
afterAll(() => {
  from?.disconnect()
  to?.disconnect()
})
beforeEach(async () => {
  await Promise.all([from.flushdb(), to.flushdb()])
})

const cli = (database: number, words: readonly string[], stdin = '') =>
  runDirectoryCli(['directory', ...words], { env: { DIRECTORY_REDIS_URL: urlOf(database) }, stdin })

async function exported(database: number): Promise<string> {
  const { code, stdout, stderr } = await cli(database, ['export'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}

async function imported(stdin: string, words: readonly string[] = []) {
  const { code, stdout, stderr } = await cli(TO, ['import', '--json', ...words], stdin)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

const text = fc.oneof(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), fc.constant('\ud800"\\\u2028'))
const userId = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter(id => !/[\p{Cc}\p{Cs}]/u.test(id))
const instant = fc.integer({ min: 0, max: 4 }).map(ms => new Date(Date.parse(AT) + ms).toISOString())
const recently = fc.integer({ min: 0, max: 22 }).map(hours => new Date(Date.now() - hours * HOUR_MS).toISOString())
/** Values that JSON can represent. */
const number = fc.double({ noNaN: true, noDefaultInfinity: true })
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
const workspaceContents = fc.record({
  members: fc.uniqueArray(fc.record({ userId, permissions: fc.subarray([...PERMISSIONS]) }), {
    maxLength: 3,
    selector: member => member.userId,
  }),
  surfaces: fc.array(
    fc.record({
      name: text,
      createdAt: instant,
      isDeleted: fc.boolean(),
      keys: fc.array(fc.record({ createdAt: instant, expiresAt: maybe(instant), revokedAt: maybe(instant) }), {
        maxLength: 3,
      }),
    }),
    { maxLength: 3 },
  ),
  workspaceKeys: fc.array(
    fc.record({ name: text, createdBy: userId, createdAt: recently, revokedAt: maybe(instant) }),
    { maxLength: 3 },
  ),
  releases: fc.array(
    fc.record({
      createdAt: instant,
      metadata: maybe(fc.dictionary(text, fc.oneof(text, number, fc.boolean(), fc.array(maybe(text))))),
      hasManifest: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
  maps: fc.array(fc.string(), { maxLength: 5 }),
})
const contents = fc.record({
  hasReceipts: fc.boolean(),
  users: fc.array(fc.record({ id: userId, email: maybe(text), name: maybe(text), createdAt: instant })),
  workspaces: fc.array(workspaceContents, { maxLength: 3 }),
})
type Contents = typeof contents extends fc.Arbitrary<infer T> ? T : never

async function fill(redis: Redis, { hasReceipts, users, workspaces }: Contents): Promise<void> {
  if (hasReceipts) await ensureReceiptSecret(redis)
  const store = createDirectory(redis)
  const releases = createReleaseStore(redis)
  for (const user of users) await store.putUser({ version: 1, ...user })
  for (const content of workspaces) {
    const workspace = aWorkspace()
    const workspaceId = workspace.id
    await store.putWorkspace(workspace)
    for (const member of content.members) await store.putMember({ version: 1, workspaceId, ...member })
    for (const { name, createdAt, isDeleted, keys } of content.surfaces) {
      const surface = aSurface({ workspaceId, name, createdAt })
      await store.putSurface(surface)
      for (const key of keys) await store.putSurfaceKey(aSurfaceKey({ workspaceId, surfaceId: surface.id, ...key }))
      // A surface that never had a key leaves only its id.
      if (isDeleted && keys.length > 0) await store.deleteSurface(workspaceId, surface.id, Date.parse(AT))
    }
    for (const key of content.workspaceKeys) {
      const record = aWorkspaceKey({ workspaceId, ...key })
      const now = Date.parse(key.createdAt)
      const creation = newCreation({ workspaceId, of: ['createWorkspaceKey'], key: record.id, asked: {} }, now)
      const once = { creation: { ...creation, salt: 'ab'.repeat(32) }, answerOf: () => ({ apiKey: { id: record.id } }) }
      await store.createWorkspaceKey(record, { by: null, now, once })
    }
    for (const [i, { createdAt, metadata, hasManifest }] of content.releases.entries()) {
      const name = `1.${i}`
      const slug = releaseSlugOf({ workspaceId, surfaceId: 'srf_1', name })
      await releases.register({
        version: 1,
        slug,
        workspaceId,
        surfaceId: 'srf_1',
        name,
        commit: null,
        metadata,
        createdAt,
      })
      const manifest = { sequence: i + 1, objectKey: 'a/b', sourceMapCount: 1, sourceFileCount: 2, completedAt: AT }
      if (hasManifest) await releases.replaceManifest(workspaceId, slug, { version: 1, ...manifest })
    }
    await releases.addStoredMaps(workspaceId, content.maps.map(sha256))
  }
}

/** The order in which surfaces were deleted is not moved: nothing but forgetting the oldest of 10,000 depends on it. */
async function movedContents(redis: Redis): Promise<Record<string, unknown>> {
  const contents = Object.entries(await contentsOf(redis))
  return Object.fromEntries(contents.filter(([key]) => !key.endsWith(':deleted-surfaces')))
}

it('an imported export gives the same directory, with every index, and exports as the same text', async () => {
  const property = fc.asyncProperty(contents, async content => {
    await Promise.all([from.flushdb(), to.flushdb()])
    await fill(from, content)
    const exportedText = await exported(FROM)
    const records = exportedText.trimEnd().split('\n').length - 1

    const dry = await imported(exportedText, ['--dry-run'])
    expect(dry).toEqual({ added: records, unchanged: 0, replaced: 0, conflicts: 0 })
    expect(await to.dbsize()).toBe(0)
    expect(await imported(exportedText)).toEqual(dry)
    expect(await exported(TO)).toBe(exportedText)
    expect(await contentsOf(to)).toEqual(await movedContents(from))
    expect(await imported(exportedText)).toEqual({ ...dry, added: 0, unchanged: records })
    expect(await contentsOf(to)).toEqual(await movedContents(from))
  })
  await fc.assert(property, { numRuns: 25 })
})

it('imported keys work or are refused at the edge of another installation as before', async () => {
  const store = createDirectory(from)
  const workspace = aWorkspace()
  const surface = aSurface({ workspaceId: workspace.id })
  await store.putWorkspace(workspace)
  await store.putSurface(surface)
  const texts = [generateKey('public'), generateKey('public')]
  const keys = texts.map(key =>
    aSurfaceKey({ workspaceId: workspace.id, surfaceId: surface.id, digest: digestOf(key) }),
  )
  for (const key of keys) await store.createSurfaceKey(key)
  await store.revokeSurfaceKey(workspace.id, surface.id, keys[1]?.id ?? '', Date.now())
  const lines = await exported(FROM)
  for (const key of texts) expect(lines).not.toContain(key.slice(6))

  // With a Redis of its own: an installation that had a directory would take the empty one for a loss.
  const edge = await startEdge(urlOf(TO))
  const statuses = () =>
    Promise.all(
      texts.map(async key => {
        const headers = { 'x-service-public-key': key, 'content-type': 'application/json' }
        const answer = await fetch(`${edge.baseUrl}/v3/session`, { method: 'POST', headers, body: '{"sessionId":"s"}' })
        return answer.status
      }),
    )
  try {
    expect(await statuses()).toEqual([401, 401])
    await imported(lines)
    await expect.poll(statuses, { timeout: 1_000 }).toEqual([200, 401])
  } finally {
    await edge.stop()
  }
})

it('imported releases make room for a new one as before: the oldest without a manifest is removed', async () => {
  const workspace = aWorkspace()
  const workspaceId = workspace.id
  const releases = createReleaseStore(from)
  await createDirectory(from).putWorkspace(workspace)
  const slugs = ['1', '2', '3', '4'].map(name => releaseSlugOf({ workspaceId, surfaceId: 'srf_1', name }))
  const [complete = '', oldest = '', older = '', added = ''] = slugs
  const createdAt = (ms: number) => new Date(Date.parse(AT) + ms).toISOString()
  for (const [ms, slug] of [complete, oldest, older].entries()) {
    await registerRelease(releases, { workspaceId, slug, createdAt: createdAt(ms) })
  }
  const counters = { sourceMapCount: 1, sourceFileCount: 2 }
  const pointer = { version: 1, sequence: 1, objectKey: 'a/b', ...counters, completedAt: AT } as const
  await releases.replaceManifest(workspaceId, complete, pointer)
  const text = await exported(FROM)
  await imported(text)

  const moved = createReleaseStore(to)
  const others = Array.from({ length: RELEASES_MAX - 3 }, (_, i) => [String(Date.parse(AT) + 10), `rel_x${i}`]).flat()
  await to.zadd(releaseKeys.releases(workspaceId), ...others)
  await registerRelease(moved, { workspaceId, slug: added, createdAt: createdAt(20) })
  const left = await Promise.all(slugs.map(async slug => (await moved.release(workspaceId, slug)) !== undefined))
  expect(left).toEqual([true, false, true, true])
})

describe('a record that differs', () => {
  it('stays and is named, unless it shall be replaced', async () => {
    const store = createDirectory(from)
    const workspace = aWorkspace({ slug: 'acme' })
    const workspaceId = workspace.id
    await store.putWorkspace(workspace)
    const surface = aSurface({ workspaceId })
    await store.putSurface(surface)
    const key = aSurfaceKey({ workspaceId, surfaceId: surface.id })
    await store.putSurfaceKey(key)
    const before = await exported(FROM)
    await imported(before)
    const there = createDirectory(to)
    await there.putWorkspace({ ...workspace, slug: 'acme-2' })
    await there.putSurface({ ...surface, name: 'Another name' })
    await there.revokeSurfaceKey(workspaceId, surface.id, key.id, Date.parse(AT))
    const changed = await exported(TO)

    const left = await cli(TO, ['import'], before)
    expect(left).toMatchObject({
      code: 10,
      stdout: '0 added, 0 unchanged, 0 replaced, 3 not changed because they differ\n',
    })
    expect(left.stderr.trimEnd().split('\n')).toEqual([
      `line 1: workspace ${workspaceId} differs from the stored one`,
      `line 2: surface ${surface.id} differs from the stored one`,
      `line 3: key ${key.id} differs from the stored one`,
    ])
    expect(await exported(TO)).toBe(changed)
    expect(await cli(TO, ['import', '--replace', '--dry-run'], before)).toEqual({
      code: 0,
      stdout: 'would be: 0 added, 0 unchanged, 3 replaced\n',
      stderr: '',
    })
    expect(await exported(TO)).toBe(changed)
    await imported(before, ['--replace'])
    expect(await contentsOf(to)).toEqual(await movedContents(from))
  })

  it('that is the secret of receipts stays, unless it shall be replaced', async () => {
    const secret = await ensureReceiptSecret(from)
    const own = await ensureReceiptSecret(to)
    const lines = await exported(FROM)
    const refused = await cli(TO, ['import'], lines)
    expect(refused).toMatchObject({
      code: 10,
      stderr: 'line 1: the receipt secret differs from the stored one\n',
    })
    expect(await readReceiptSecret(to)).toEqual(own)
    await imported(lines, ['--replace'])
    expect(await readReceiptSecret(to)).toEqual(secret)
  })

  it('never takes a digest or an id from another key', async () => {
    const store = createDirectory(from)
    const workspace = aWorkspace()
    await store.putWorkspace(workspace)
    const key = aSurfaceKey({ workspaceId: workspace.id })
    const workspaceKey = aWorkspaceKey({ workspaceId: workspace.id })
    await store.putSurfaceKey(key)
    await store.createWorkspaceKey(workspaceKey)
    const there = createDirectory(to)
    await there.putWorkspace(workspace)
    await there.putSurfaceKey({ ...key, id: 'key_1', workspaceId: 'ws_1' })
    await there.createWorkspaceKey(aWorkspaceKey({ id: workspaceKey.id, workspaceId: workspace.id }))
    const before = await contentsOf(to)

    const refused = await cli(TO, ['import', '--replace'], await exported(FROM))
    expect(refused.code).toBe(10)
    expect(refused.stderr.trimEnd().split('\n')).toEqual([
      `line 2: key ${key.id} has the digest of another key, key_1`,
      `line 3: key ${workspaceKey.id} is stored with another digest`,
    ])
    expect(await contentsOf(to)).toEqual(before)
  })

  it('stays if it is a manifest newer than the imported one, whose object is gone', async () => {
    const workspace = aWorkspace()
    const workspaceId = workspace.id
    const slug = releaseSlugOf({ workspaceId, surfaceId: 'srf_1', name: '1' })
    const complete = (redis: Redis, sequence: number) => {
      const counters = { sourceMapCount: 1, sourceFileCount: 2 }
      const pointer = { version: 1, sequence, objectKey: `${sequence}.json`, ...counters, completedAt: AT } as const
      return createReleaseStore(redis).replaceManifest(workspaceId, slug, pointer)
    }
    await createDirectory(from).putWorkspace(workspace)
    await registerRelease(createReleaseStore(from), { workspaceId, slug })
    await complete(from, 5)
    const text = await exported(FROM)
    await imported(text)
    await complete(to, 6)
    const later = await contentsOf(to)

    for (const words of [[], ['--replace'], ['--replace', '--dry-run']]) {
      const refused = await cli(TO, ['import', ...words], text)
      expect(refused.code).toBe(10)
      expect(refused.stderr).toBe(`line 3: manifest of ${slug} is older than the stored one\n`)
      expect(await contentsOf(to)).toEqual(later)
    }
    const newer = await exported(TO)
    const replaced = await runDirectoryCli(['directory', 'import', '--replace', '--json'], {
      env: { DIRECTORY_REDIS_URL: urlOf(FROM) },
      stdin: newer,
    })
    expect(JSON.parse(replaced.stdout)).toEqual({ added: 0, unchanged: 2, replaced: 1, conflicts: 0 })
    expect(await contentsOf(from)).toEqual(later)
  })

  it('is refused with everything that belongs to it if its slug belongs to another workspace', async () => {
    const workspace = aWorkspace({ slug: 'acme' })
    const store = createDirectory(from)
    await store.putWorkspace(workspace)
    await store.putMember({ version: 1, workspaceId: workspace.id, userId: 'a', permissions: [] })
    await store.putSurfaceKey(aSurfaceKey({ workspaceId: workspace.id }))
    const other = aWorkspace({ slug: 'acme' })
    await createDirectory(to).putWorkspace(other)
    const before = await contentsOf(to)

    for (const words of [[], ['--replace'], ['--dry-run']]) {
      const refused = await cli(TO, ['import', ...words], await exported(FROM))
      expect(refused.code).toBe(10)
      expect(refused.stderr.trimEnd().split('\n')).toEqual([
        `line 1: the slug "acme" of ${workspace.id} belongs to ${other.id}`,
        `line 2: member of ${workspace.id}, which was refused`,
        `line 3: surface-key of ${workspace.id}, which was refused`,
      ])
      expect(await contentsOf(to)).toEqual(before)
    }
  })
})

describe('invalid lines of an import', () => {
  const user = { version: 1, id: 'a', email: null, name: null, createdAt: AT }
  const line = (kind: string, record: object) => `${JSON.stringify({ kind, record })}\n`
  const end = (records: number) => line('end', { version: 1, records })
  const first = line('user', user)
  const member = { version: 1, workspaceId: 'ws_1', userId: 'a', permissions: [] }
  const workspace = line('workspace', { version: 1, id: 'ws_1', slug: 'acme', name: 'A', createdAt: AT })
  const manifest = { sequence: 1, objectKey: 'k', sourceMapCount: 1, sourceFileCount: 1, completedAt: AT }

  it.each([
    ['> penstock@0.1.0 cli', 'line 2: is not a JSON object'],
    ['{"kind":"user"}', 'line 2: is not a JSON object'],
    ['[]', 'line 2: is not a JSON object'],
    [line('visitor', user), 'line 2: the kind "visitor" is unknown'],
    [line('__proto__', user), 'line 2: the kind "__proto__" is unknown'],
    [line('user', { ...user, version: 2 }), 'line 2: version 2 of the kind "user" is unknown'],
    [line('user', { ...user, id: '' }), 'line 2: user.id: '],
    [line('user', { ...user, role: 'x' }), 'line 2: user: Unrecognized key: "role"'],
    [line('user', { ...user, createdAt: 'yesterday' }), 'line 2: user.createdAt: '],
    [line('member', member), 'line 2: there is no workspace "ws_1"'],
    [`${workspace}${line('member', { ...member, permissions: ['x'] })}`, 'line 3: member.permissions.0: '],
    [
      `${workspace}${line('manifest', { version: 1, ...manifest, workspaceId: 'ws_1', releaseSlug: 'rel_1' })}`,
      'line 3: there is no release "rel_1"',
    ],
    [
      `${workspace}${line('manifest', { version: 1, ...manifest, workspaceId: 'ws_1', releaseSlug: 'rel_1:\ud800' })}`,
      'line 3: manifest.releaseSlug: ',
    ],
    [line('end', { version: 1, records: 2 }), 'line 2: expected 2 records before it, found 1'],
    [`${end(1)}${first}`, 'line 3: comes after the last line'],
    ['', 'the last line is missing'],
    [line('user', { ...user, name: 'x'.repeat(5_000_000) }), 'line 2: is longer than'],
  ])('are refused with their number and rule: %#', async (bad, rule) => {
    const { code, stdout, stderr } = await cli(TO, ['import'], first + bad)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(rule)
    expect(stderr.trimEnd()).not.toContain('\n')
    // The lines before it are imported, and the whole file may follow.
    expect(await imported(first + end(1))).toMatchObject({ unchanged: 1 })
  })

  it('are reported when the file does not exist', async () => {
    const { code, stdout, stderr } = await cli(TO, ['import', '/nowhere/directory.jsonl'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^the file cannot be read: .*\/nowhere\/directory.jsonl'\n$/)
  })

  it('are accepted when blank or with Windows line ends', async () => {
    expect(await imported(`\r\n${first.replace('\n', '\r\n')}\n${end(1)}\n\n`)).toMatchObject({ added: 1 })
  })
})

it('sets that are larger than a page are exported in order, each member once', async () => {
  const releases = createReleaseStore(from)
  const sha256s = Array.from({ length: 3_500 }, () => sha256(randomUUID()))
  await releases.addStoredMaps('ws_1', sha256s)
  const walked = await collect(walkSortedMaps(from, releaseKeys.maps('ws_1'), 700))
  expect(walked).toEqual([...sha256s].sort())
  const [least] = walked
  if (!least) throw new Error('no member was exported')
  await from.srem(releaseKeys.maps('ws_1'), Buffer.from(least, 'hex'))
  expect((await collect(walkSortedMaps(from, releaseKeys.maps('ws_1'), 700)))[0]).toBe(walked[1])
})
