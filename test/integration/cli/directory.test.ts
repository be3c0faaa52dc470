import { execFile } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { jwtVerify } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { provision } from '../../../deploy/local/workspace/provision.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { PERMISSIONS } from '../../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../../schemas/records/key-form.ts'
import { DEFAULT_SCRUBBING } from '../../../schemas/records/scrubbing.ts'
import { createDirectory, type Directory } from '../../../shared/directory/directory.ts'
import { DIRECTORY_ROOT, directoryKeys } from '../../../shared/directory/record.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { digestOf } from '../../../shared/ids/credentials.ts'
import { uploadKeys } from '../../../shared/queue/upload-keys.ts'
import { type CliSettings, runDirectoryCli } from '../../support/clients/run-cli.ts'
import { collect } from '../../support/oracles/collect.ts'
import { startEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { aWorkspaceKey } from '../../support/workspaces/directory-records.ts'
import { registerRelease } from '../../support/workspaces/stored-releases.ts'

/** A database of Redis, which is emptied before each test. */
const DATABASE = 6
const PENSTOCK = fileURLToPath(new URL('../../../cli/penstock.mjs', import.meta.url))

let redis: Redis
let store: Directory
let env: Record<string, string>

beforeAll(() => {
  const { redisUrl } = sharedServices()
  redis = new Redis(`${redisUrl}/${DATABASE}`)
  store = createDirectory(redis)
  // Only the directory is reachable: a command that used more would fail.
  env = { DIRECTORY_REDIS_URL: `${redisUrl}/${DATABASE}`, REDIS_URL: 'redis://127.0.0.1:1', CLICKHOUSE_URL: 'nowhere' }
})
afterAll(() => redis?.disconnect())
beforeEach(async () => {
  await redis.flushdb()
})

const run = (words: readonly string[], settings: CliSettings = {}) => runDirectoryCli(words, { env, ...settings })

/** Runs a command that must succeed and returns the JSON that it prints. */
async function done<T>(words: readonly string[], settings: CliSettings = {}): Promise<T> {
  const { code, stdout, stderr } = await run([...words, '--json'], settings)
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}
const linesOf = (stdout: string) => stdout.trimEnd().split('\n').filter(Boolean)

async function makeSurface(): Promise<{ workspace: string; surface: string }> {
  await done(['workspace', 'create', '--slug', 'acme', '--name', 'Acme Corp.'])
  const { id } = await done<{ id: string }>(['surface', 'create', '--workspace', 'acme', '--name', 'Web shop'])
  return { workspace: 'acme', surface: id }
}

describe('workspaces, users and members', () => {
  it('are created with an id and listed', async () => {
    const { id } = await done<{ id: string }>(['workspace', 'create', '--slug', 'acme', '--name', 'Acme Corp.'])
    expect(id).toMatch(/^ws_[0-9a-f]{20}$/)
    expect(await store.workspaceBySlug('acme')).toMatchObject({ id, name: 'Acme Corp.' })
    const { stdout } = await run(['workspace', 'list'])
    expect(stdout).toMatch(/^ID +SLUG +CREATED +NAME$/m)
    expect(stdout).toMatch(new RegExp(`^${id} +acme +20\\S+Z +Acme Corp.$`, 'm'))
  })

  it('are offered rules that mask secrets in texts, and told of them', async () => {
    const create = ['workspace', 'create', '--name', 'Acme', '--slug']
    expect((await run([...create, 'plain'])).stdout).toMatch(/are stored as they are sent: "penstock scrubbing"\n$/)
    const { stdout } = await run([...create, 'acme', '--scrub', 'card_number', 'email'])
    expect(stdout).toMatch(/\nmasked in every text: card_number, email\n$/)
    const { id = '' } = (await store.workspaceBySlug('acme')) ?? {}
    expect((await store.scrubbing(id))?.rules).toEqual([
      ...DEFAULT_SCRUBBING,
      { name: 'values', values: ['card_number', 'email'], action: 'mask' },
    ])
    expect(await run([...create, 'other', '--scrub', 'everything'])).toMatchObject({ code: 2 })
  })

  it('cannot have names with control sequences of terminals', async () => {
    const refused = await run(['workspace', 'create', '--slug', 'acme', '--name', 'Acme \u{1b}[31m'])
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    await store.putWorkspace({
      version: 1,
      id: 'ws_1',
      slug: 'acme',
      name: 'A \u{1b}[31m \u{202e}',
      createdAt: new Date().toISOString(),
    })
    const { stdout } = await run(['workspace', 'list'])
    expect(stdout).toContain('A \\u{1b}[31m \\u{202e}')
  })

  it('grant a user the named permissions, or all, and revoke them', async () => {
    await done(['workspace', 'create', '--slug', 'acme', '--name', 'Acme'])
    const workspace = await store.workspaceBySlug('acme')
    if (!workspace) throw new Error('no workspace')
    const member = ['--workspace', 'acme', '--user', 'auth0|1']
    const unknown = await run(['member', 'add', ...member, '--all'])
    expect(unknown).toMatchObject({ code: 3, stdout: '' })
    expect(unknown.stderr).toContain('there is no user "auth0|1"')

    await done(['user', 'create', '--id', 'auth0|1', '--email', 'anna@example.com', '--name', 'Anna'])
    expect(await run(['user', 'create', '--id', 'auth0|1'])).toMatchObject({ code: 10, stdout: '' })
    expect(await store.user('auth0|1')).toMatchObject({ email: 'anna@example.com', name: 'Anna' })
    expect((await run(['user', 'list'])).stdout).toMatch(/^auth0\|1 +20\S+Z +anna@example.com +Anna$/m)

    expect(await run(['member', 'add', ...member])).toMatchObject({ code: 2, stdout: '' })
    expect(await run(['member', 'add', ...member, '--permission', 'org:everything'])).toMatchObject({ code: 2 })
    expect(await run(['member', 'add', ...member, '--all', '--permission', 'org:findings:read'])).toMatchObject({
      code: 2,
    })
    await done(['member', 'add', ...member, '--all'])
    expect((await store.member(workspace.id, 'auth0|1'))?.permissions).toEqual(PERMISSIONS)
    await done(['member', 'add', ...member, '--permission', 'org:sessions:read', 'org:findings:read'])
    const listed = await done(['member', 'list', '--workspace', workspace.id])
    const permissions = ['org:findings:read', 'org:sessions:read']
    expect(listed).toEqual({ workspaceId: workspace.id, userId: 'auth0|1', permissions })

    expect(await run(['member', 'remove', ...member])).toMatchObject({ code: 0 })
    expect(await run(['member', 'remove', ...member])).toEqual({
      code: 3,
      stdout: '',
      stderr: '"auth0|1" is not a member of acme\n',
    })
    expect(await store.member(workspace.id, 'auth0|1')).toBeUndefined()
  })

  it('report errors in one line and change nothing', async () => {
    await done(['workspace', 'create', '--slug', 'acme', '--name', 'Acme'])
    for (const [words, code, rule] of [
      [['workspace', 'create', '--slug', 'acme', '--name', 'B'], 10, 'another workspace has the slug "acme"'],
      [['workspace', 'create', '--slug', 'Acme', '--name', 'B'], 2, 'a-z, 0-9'],
      [['workspace', 'create', '--slug', 'b'], 2, '--name'],
      [['member', 'list', '--workspace', 'nobody'], 3, 'there is no workspace "nobody"'],
      [['surface', 'create', '--workspace', 'ws_nobody', '--name', 'x'], 3, 'there is no workspace "ws_nobody"'],
      [['user', 'create', '--id', 'a\nb'], 2, 'no control characters'],
      [['user', 'create', '--id', 'a', '--email', 'b'], 2, 'not an email address'],
      [['nothing'], 2, 'unknown command'],
    ] as const) {
      const { stdout, stderr, ...ended } = await run(words)
      expect({ ...ended, stdout, stderr }, words.join(' ')).toMatchObject({ code, stdout: '' })
      expect(stderr).toContain(rule)
    }
    expect(linesOf((await run(['workspace', 'list', '--json'])).stdout)).toHaveLength(1)
    expect(await run(['user', 'list', '--json'])).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  it('fail when the directory does not respond', async () => {
    const away = await run(['user', 'list'], { env: { DIRECTORY_REDIS_URL: 'redis://127.0.0.1:1' } })
    expect(away).toMatchObject({ code: 1, stdout: '' })
    expect(away.stderr).toMatch(
      /^TransientError: the Redis of the directory \(DIRECTORY_REDIS_URL\) did not answer within \d+ ms: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    )
    const wrong = await run(['user', 'list'], { env: { DIRECTORY_REDIS_URL: 'http://x' } })
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain('DIRECTORY_REDIS_URL')
  })
})

describe('surfaces and keys', () => {
  it('print a key once, only on stdout, and it works at the edge until its surface is deleted', async () => {
    const { surface } = await makeSurface()
    const { redisUrl } = sharedServices()
    const edge = await startEdge(redisUrl, { DIRECTORY_REDIS_URL: `${redisUrl}/${DATABASE}` })
    const beat = async (key: string) => {
      const headers = { 'x-service-public-key': key, 'content-type': 'application/json' }
      const answer = await fetch(`${edge.baseUrl}/v3/session`, { method: 'POST', headers, body: '{"sessionId":"s"}' })
      return answer.status
    }
    try {
      const made = await run(['key', 'create', '--workspace', 'acme', '--surface', surface, '--kind', 'public'])
      const key = made.stdout.trimEnd()
      expect(made.code).toBe(0)
      expect(isWellFormedKey('public', key)).toBe(true)
      expect(made.stderr).toMatch(/^public key key_\w+ of srf_\w+: created, valid until it is revoked\n$/)
      expect(await beat(key)).toBe(200)

      const listed = await run(['key', 'list', '--workspace', 'acme', '--surface', surface, '--json'])
      expect(
        listed.stdout + (await run(['key', 'list', '--workspace', 'acme', '--surface', surface])).stdout,
      ).not.toMatch(new RegExp(`${key.slice(6)}|${digestOf(key)}`))
      expect(JSON.parse(listed.stdout)).toMatchObject({ kind: 'public', prefix: key.slice(0, 6), state: 'active' })

      expect(await run(['surface', 'delete', '--workspace', 'acme', '--surface', surface])).toMatchObject({ code: 0 })
      await expect.poll(() => beat(key), { timeout: 1_000 }).toBe(401)
      expect(await run(['surface', 'delete', '--workspace', 'acme', '--surface', surface])).toMatchObject({ code: 3 })
      expect(await run(['surface', 'list', '--workspace', 'acme', '--json'])).toMatchObject({ code: 0, stdout: '' })
      const afterwards = await done(['key', 'list', '--workspace', 'acme', '--surface', surface])
      expect(afterwards).toMatchObject({ state: 'revoked' })
    } finally {
      await edge.stop()
    }
  })

  it('give a secret key its scopes and expiry', async () => {
    const { surface } = await makeSurface()
    const create = ['key', 'create', '--workspace', 'acme', '--surface', surface]
    const now = () => Date.parse('2026-08-01T00:00:00Z')
    const secret = [...create, '--kind', 'secret', '--scope', 'release:write', '--expires', '90d']
    const { key } = await done<{ key: Record<string, string> }>(secret, { now })
    expect(key).toMatchObject({ kind: 'secret', scopes: ['release:write'], expiresAt: '2026-10-30T00:00:00.000Z' })
    expect(await store.surfaceKeyByDigest(digestOf(key.secret ?? ''))).toMatchObject({ id: key.id, surfaceId: surface })
    const later = () => Date.parse('2026-10-30T00:00:00Z')
    const list = ['key', 'list', '--workspace', 'acme', '--surface', surface]
    expect(await done(list, { now: later })).toMatchObject({ state: 'expired' })

    for (const bad of [
      ['--kind', 'secret'],
      ['--kind', 'public', '--scope', 'release:write'],
      ['--kind', 'secret', '--scope', 'release:read'],
      ['--kind', 'workspace'],
      ['--kind', 'public', '--expires', '0d'],
      ['--kind', 'public', '--expires', '40000d'],
    ]) {
      expect(await run([...create, ...bad]), bad.join(' ')).toMatchObject({ code: 2, stdout: '' })
    }
    const limits = ['--requests-per-second', '20', '--allow-origin', 'https://shop.example', 'https://*.shop.example']
    const limited = await done<{ key: { id: string } }>([...create, '--kind', 'public', ...limits])
    const allowedOrigins = ['https://shop.example', 'https://*.shop.example']
    const which = ['key', 'update', '--workspace', 'acme', '--surface', surface, '--key', limited.key.id]
    const { id: workspaceId } = (await store.workspaceBySlug('acme')) ?? { id: '' }
    const record = () => store.surfaceKey(workspaceId, surface, limited.key.id)
    expect(await record()).toMatchObject({ quotas: { requestsPerSecond: 20 }, allowedOrigins })
    await done([...which, '--requests-per-second', 'none', '--bytes-per-day', '5000', '--allow-origin', 'none'])
    expect(await record()).toMatchObject({ quotas: { bytesPerDay: 5_000 } })
    expect(await record()).not.toHaveProperty('allowedOrigins')
    expect((await run(which)).code).toBe(2)
    expect((await run([...which, '--allow-origin', 'shop.example'])).stderr).toContain('must be an origin')
    const nowhere = ['key', 'create', '--workspace', 'acme', '--surface', 'srf_0', '--kind', 'public']
    expect(await run(nowhere)).toMatchObject({ code: 3, stdout: '' })
    expect(await store.surfaceKeys(workspaceId, surface)).toHaveLength(2)
    expect(await store.surfaceIds(workspaceId)).toEqual([surface])
  })

  it('revoke keys of surfaces and of the workspace, each only under its own owner', async () => {
    const { surface } = await makeSurface()
    const workspaceId = (await store.workspaceBySlug('acme'))?.id ?? ''
    const own = aWorkspaceKey({ workspaceId, name: 'deploy' })
    await store.createWorkspaceKey(own)
    const create = ['key', 'create', '--workspace', 'acme', '--surface', surface, '--kind', 'public']
    const { key } = await done<{ key: { id: string } }>(create)
    const revoke = ['key', 'revoke', '--workspace', 'acme', '--key']

    const table = linesOf((await run(['key', 'list', '--workspace', 'acme'])).stdout)
    expect(table[0]).toMatch(/^ID +PREFIX +STATE +CREATED +EXPIRES +CREATED BY +NAME +SCOPES$/)
    expect(table[1]).toMatch(new RegExp(`^${own.id} +wk_... +active +\\S+Z +never +user_1 +deploy +org:surfaces:read$`))
    expect(table).toHaveLength(2)
    const listed = await done(['key', 'list', '--workspace', 'acme'])
    expect(listed).toMatchObject({ id: own.id, kind: 'workspace', name: 'deploy', state: 'active' })
    expect(JSON.stringify(listed)).not.toContain(own.digest)
    expect(await run([...revoke, own.id, '--surface', surface])).toMatchObject({ code: 3 })
    expect(await run([...revoke, key.id])).toMatchObject({ code: 3 })
    expect(await run([...revoke, own.id])).toMatchObject({ code: 0 })
    expect(await run([...revoke, key.id, '--surface', surface])).toMatchObject({ code: 0 })
    expect(await done(['key', 'list', '--workspace', 'acme'])).toMatchObject({ state: 'revoked' })
    expect(await done(['key', 'list', '--workspace', 'acme', '--surface', surface])).toMatchObject({ state: 'revoked' })
  })
})

describe('tokens', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'penstock-token-'))
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))

  it('are signed by the local installation', async () => {
    const secrets = await loadSecrets(directory)
    await provision(store, secrets)
    const words = ['token', '--workspace', secrets.workspaceId, '--user', secrets.userId, '--expires', '2h']
    const now = () => Date.parse('2026-08-01T00:00:00Z')
    const { code, stdout, stderr } = await run(words, { env: { ...env, LOCAL_DIR: directory }, now })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { payload } = await jwtVerify(stdout.trimEnd(), createPublicKey(secrets.authPublicKey), {
      issuer: AUTH_ISSUER,
      audience: AUTH_AUDIENCE,
      currentDate: new Date(now()),
    })
    expect(payload).toMatchObject({ sub: secrets.userId, org: 'local', exp: now() / 1_000 + 7_200 })

    const stranger = await run(['token', '--workspace', 'local', '--user', 'x'], {
      env: { ...env, LOCAL_DIR: directory },
    })
    expect(stranger.code).toBe(0)
    expect(stranger.stderr).toContain('"x" is not a member of local')
  })

  it('are refused where there is no installation', async () => {
    const words = ['token', '--workspace', 'local', '--user', 'x']
    const nowhere = await run(words, { directory: join(directory, 'empty') })
    expect(nowhere).toMatchObject({ code: 3, stdout: '' })
    expect(nowhere.stderr).toContain(`there is no local installation in ${join(directory, 'empty', '.local')}`)
    await writeFile(join(directory, 'secrets.json'), '{')
    const broken = await run(words, { env: { ...env, LOCAL_DIR: directory } })
    expect(broken).toMatchObject({ code: 1, stdout: '' })
    expect(broken.stderr).toContain('secrets.json is not a file that "npm start" has written')
  })
})

it('deletes a release of the workspace', async () => {
  await makeSurface()
  const { id: workspaceId } = (await store.workspaceBySlug('acme')) ?? { id: '' }
  const releases = createReleaseStore(redis)
  const { signed } = uploadKeys(await registerRelease(releases, { workspaceId, slug: 'rel_a' }))
  await redis.hset(signed, 'a.map', '{}')
  const words = ['release', 'delete', '--workspace', 'acme', '--release', 'rel_a']
  // Nothing is deleted while the uploads cannot be.
  expect(await run(words)).toMatchObject({ code: 1, stdout: '' })
  expect(await releases.release(workspaceId, 'rel_a')).toBeDefined()
  const settings = { env: { ...env, REDIS_URL: env.DIRECTORY_REDIS_URL as string } }
  expect(await done(words, settings)).toEqual({ slug: 'rel_a', workspaceId })
  expect(await releases.release(workspaceId, 'rel_a')).toBeUndefined()
  expect(await redis.exists(signed)).toBe(0)
  const again = await run(words, settings)
  expect(again).toMatchObject({ code: 3, stdout: '' })
  expect(again.stderr).toContain('there is no release "rel_a" in acme')
})

describe('a start of the local installation', () => {
  it('adds records of an older start to the lists, without those revoked, deleted or changed since', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'penstock-provision-'))
    const secrets = await loadSecrets(directory)
    await rm(directory, { recursive: true, force: true })
    const { workspaceId, surfaceId, userId } = secrets
    await provision(store, secrets)
    const indexes = ['workspaces', `workspace:${workspaceId}:members`, `workspace:${workspaceId}:surface-ids`]
    await redis.del(...indexes.map(name => `${DIRECTORY_ROOT}:${name}`), directoryKeys.surfaces(workspaceId))
    await store.putMember({ version: 1, workspaceId, userId, permissions: ['org:findings:read'] })
    await store.revokeSurfaceKey(workspaceId, surfaceId, secrets.publicKeyId, Date.now())

    await provision(store, secrets)
    expect(await collect(store.workspaces())).toHaveLength(1)
    expect((await collect(store.members(workspaceId)))[0]?.permissions).toEqual(['org:findings:read'])
    expect(await store.surfaces(workspaceId, { limit: 5 })).toHaveLength(1)
    expect(await store.surfaceKey(workspaceId, surfaceId, secrets.publicKeyId)).not.toMatchObject({ revokedAt: null })
    expect(await store.surfaceKey(workspaceId, surfaceId, secrets.secretKeyId)).toMatchObject({ revokedAt: null })

    await store.deleteSurface(workspaceId, surfaceId, Date.now())
    await provision(store, secrets)
    expect(await store.surface(workspaceId, surfaceId)).toBeUndefined()
  })
})

describe('the command penstock', () => {
  it('runs from any link to it, with an unchanged environment', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'penstock-bin-'))
    try {
      await symlink(PENSTOCK, join(directory, 'penstock'))
      const penstock = (words: readonly string[]) =>
        new Promise<{ code: number | null; stdout: string; stderr: string }>(resolve => {
          const options = { env: { PATH: process.env.PATH, ...env }, cwd: directory, timeout: 50_000 }
          const child = execFile('./penstock', words, options, (_error, stdout, stderr) =>
            resolve({ code: child.exitCode, stdout, stderr }),
          )
        })
      const made = await penstock(['workspace', 'create', '--slug', 'acme', '--name', 'Acme', '--json'])
      expect(made).toMatchObject({ code: 0, stderr: '' })
      expect(await store.workspaceBySlug('acme')).toMatchObject({ id: JSON.parse(made.stdout).id })
      const failed = await penstock(['token', '--workspace', 'acme', '--user', 'x'])
      expect(failed).toMatchObject({ code: 3, stdout: '' })
      expect((await penstock(['directory', 'import', '--help'])).stdout).toContain('Exit codes:')
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
