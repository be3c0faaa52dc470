import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { importSPKI, jwtVerify, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { usersConfig } from '../../../deploy/local/stores/clickhouse.ts'
import { loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { runDirectoryCli } from '../../support/clients/run-cli.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import type { OperatePage } from '../../support/operate/page.ts'
import { createAuthority } from '../../support/proxy/certificates.ts'
import { encrypted, openTlsPort } from '../../support/proxy/encrypted-stores.ts'
import { AUDIENCE, call, ISSUER, signToken, startApi } from '../../support/services/api.ts'
import { until } from '../../support/until.ts'

const [PEPPER, OTHER_PEPPER] = ['the pepper of before, 32 bytes and more', 'the pepper of after, 32 bytes and more']
const [BACKUP_KEY, OTHER_BACKUP_KEY] = ['the key of before, with over 32 bytes', 'the key of after, with over 32 bytes']
const NEW_PASSWORD = 'another-password'
/** An export without a record, which stores nothing. */
const EMPTY = '{"resourceLogs":[]}'

let installation: OperatedInstallation
let page: OperatePage

beforeAll(async () => {
  installation = await startOperatedInstallation()
  page = await installation.openPage('rotate.md')
  await installation.clients.untilServed(30_000)
})

afterAll(() => installation?.stop())

/** Time limit of a rotation. It replaces the processes several times, which takes long on a busy machine. */
const ROTATED_MS = 10 * MINUTE_MS

/** Replaces edge and workers by processes with the current settings, and waits until clients of every kind are served. */
async function replaceProcesses(): Promise<void> {
  await installation.replaceEdge()
  await installation.stopWorkers()
  await installation.startWorkers()
  await installation.clients.untilServed(30_000)
}

/** Starts an API on the stores, runs work with its address, and stops it. */
async function withApi<T>(
  settings: Readonly<Record<string, string | undefined>>,
  work: (url: string) => Promise<T>,
  now?: () => number,
): Promise<T> {
  const { REDIS_URL: redisUrl = '', CLICKHOUSE_URL: clickhouseUrl = '' } = installation.settings
  const api = await startApi({ redisUrl, clickhouseUrl }, 'penstock', { ...installation.settings, ...settings }, now)
  try {
    return await work(api.baseUrl)
  } finally {
    await api.stop()
  }
}

const cli = async (words: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { code, stdout, stderr } = await runDirectoryCli(words, { env: { ...installation.settings, ...env } })
  return { code, stdout, stderr }
}

/** A session of the user of the installation. */
const session = () => signToken({ org: 'local', sub: installation.secrets.userId })
const surfaces = async (url: string, bearer: string) => (await call(url, 'GET /v3/surfaces', { bearer })).status

describe('without an outage', () => {
  it('another KEY_PEPPER leaves keys valid, and refuses a creation that was begun with the one before', async () => {
    const bearer = await session()
    const body = {
      idempotencyKey: randomUUID(),
      name: 'Terraform',
      scopes: ['org:surfaces:read'],
      secondsUntilExpiration: null,
    }
    const create = (url: string) => call(url, 'POST /v3/workspaces/local/api-keys', { bearer, body })
    const created = await withApi({ KEY_PEPPER: PEPPER }, create)
    expect(created).toMatchObject({ status: 201 })
    const { secret } = (created.body as { apiKey: { secret: string } }).apiKey
    await withApi({ KEY_PEPPER: OTHER_PEPPER }, async url => {
      expect(await surfaces(url, secret)).toBe(200)
      expect(await create(url)).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_CONFLICT' } })
    })
  })

  it('a JWKS has the keys of before and after, and a removed key is forgotten within ten minutes', async () => {
    const [first, second] = [sessionKey('first'), sessionKey('second')]
    const published = [first.jwk]
    const jwks = createServer((_, answer) => void answer.end(JSON.stringify({ keys: published })))
    jwks.listen(0, '127.0.0.1')
    await once(jwks, 'listening')
    const { port } = jwks.address() as AddressInfo
    const settings = { AUTH_PUBLIC_KEY: undefined, AUTH_JWKS_URL: `http://127.0.0.1:${port}/` }
    let aheadMs = 0
    const check = async (url: string) => {
      const [before, after] = [await first.sign(), await second.sign()]
      expect([await surfaces(url, before), await surfaces(url, after)]).toEqual([200, 401])
      published.push(second.jwk)
      expect([await surfaces(url, before), await surfaces(url, after)]).toEqual([200, 200])
      published.shift()
      aheadMs = 10 * MINUTE_MS
      expect([await surfaces(url, before), await surfaces(url, after)]).toEqual([401, 200])
    }
    await withApi(settings, check, () => Date.now() + aheadMs).finally(() => jwks.close())
  })

  it('the secret of receipts is replaced, and receipts of before can be read', async () => {
    const { ledger } = installation.clients
    const known = ledger.entries.find(({ outcome }) => outcome === 'acknowledged')?.receiptId ?? ''
    const headers = { 'x-service-public-key': installation.secrets.publicKey }
    await page.run('Secret of receipts', { DIRECTORY_BACKUP_KEY: BACKUP_KEY })
    await replaceProcesses()
    const next = ledger.entries.findLast(({ outcome }) => outcome === 'acknowledged')?.receiptId ?? ''
    expect(tagOf(next)).not.toBe(tagOf(known))
    await withApi({}, async url => {
      for (const id of [known, next])
        expect(await call(url, `GET /v3/receipts/${id}`, { headers })).toMatchObject({ status: 200 })
    })
  })

  it('backups are made with another key, and those of before need the old one', { timeout: ROTATED_MS }, async () => {
    installation.settings.DIRECTORY_BACKUP_KEY = BACKUP_KEY
    await replaceProcesses()
    const { stdout } = await cli(['directory', 'backup', '--json'])
    const { name } = JSON.parse(stdout) as { name: string }
    installation.settings.DIRECTORY_BACKUP_KEY = OTHER_BACKUP_KEY
    await replaceProcesses()
    await page.run('Key of the backups', installation.settings)

    const elsewhere = { DIRECTORY_REDIS_URL: `${installation.settings.DIRECTORY_REDIS_URL}/5` }
    const restore = (words: readonly string[], env = {}) =>
      cli(['directory', 'restore', ...words], { ...elsewhere, ...env })
    expect(await restore(['--backup', name])).toMatchObject({ code: 1 })
    expect(await restore(['--backup', name], { DIRECTORY_BACKUP_KEY: BACKUP_KEY })).toMatchObject({ code: 0 })
    expect(await restore(['--backup', 'latest', '--replace'])).toMatchObject({ code: 0 })
  })

  it('Redis has two passwords until every process has the new one', { timeout: ROTATED_MS }, async () => {
    const { settings } = installation
    const before = settings.REDIS_URL ?? ''
    const url = new URL(before)
    await page.run('Password of Redis', { NEW_PASSWORD })
    const OLD_PASSWORD = url.password
    url.password = NEW_PASSWORD
    settings.REDIS_URL = settings.DIRECTORY_REDIS_URL = url.href
    await replaceProcesses()
    await page.run('Remove the old password of Redis', { NEW_URL: url.href, OLD_PASSWORD })
    await installation.clients.untilServed(30_000)
    expect(await answerOf(before)).toMatch(/WRONGPASS/)
    expect(await answerOf(url.href)).toBe('PONG')
  })

  it('Redis and its clients have certificates of two authorities until every process trusts the new one', {
    timeout: ROTATED_MS,
  }, async () => {
    const { services, settings } = installation
    const plain = settings.REDIS_URL ?? ''
    const [before, after] = ['authority', 'next-authority'].map(name => createAuthority(join(services.dir, name)))
    if (before === undefined || after === undefined) throw new Error('unreachable')
    const port = await openTlsPort(plain, before, before.issue('localhost'))
    const client = before.issue('client')
    const files = { ca: join(services.dir, 'ca.pem'), cert: client.certificate, key: client.key }
    await copyFile(before.file, files.ca)
    settings.REDIS_URL = `${encrypted(plain, 'rediss:', port)}?${new URLSearchParams(files)}`
    settings.DIRECTORY_REDIS_URL = settings.REDIS_URL
    await replaceProcesses()

    const variables = { REDIS_URL: plain, CA: files.ca }
    await page.run('Certificates of Redis', { ...variables, NEW_CA: after.file })
    await replaceProcesses()
    const server = after.issue('localhost')
    await page.run('Renew the certificate of Redis', {
      ...variables,
      NEW_CERTIFICATE: server.certificate,
      NEW_KEY: server.key,
    })
    const next = after.issue('client')
    await copyFile(next.certificate, files.cert)
    await copyFile(next.key, files.key)
    await replaceProcesses()
    await copyFile(after.file, files.ca)
    const redis = new Redis(plain)
    await redis.config('SET', 'tls-ca-cert-file', files.ca)
    redis.disconnect()
    await replaceProcesses()
    // For the connections of this test. The processes keep theirs.
    settings.REDIS_URL = settings.DIRECTORY_REDIS_URL = plain
  })

  it('ClickHouse has a second user while the password of the first changes', { timeout: ROTATED_MS }, async () => {
    const { services, settings } = installation
    const folder = join(services.dir, 'clickhouse', 'users.d')
    const before = settings.CLICKHOUSE_URL ?? ''
    const user = /<penstock>.*<\/penstock>/s.exec(usersConfig(NEW_PASSWORD))?.[0] ?? ''
    const secondUser = user.replaceAll('penstock>', 'second>')
    const writeUsers = async (users: string) => {
      await writeFile(join(folder, 'users.xml'), `<clickhouse><users>${users}</users></clickhouse>`)
      // The server of the tests reads its users when it starts. Batches wait meanwhile.
      await services.clickhouse.stop()
      await services.clickhouse.restart()
    }
    await mkdir(folder)
    await writeUsers(secondUser)
    const [first, second] = [new URL(before), new URL(before)]
    first.password = NEW_PASSWORD
    second.password = NEW_PASSWORD
    second.username = 'second'
    await page.run('Password of ClickHouse', { SECOND: second.href })
    settings.CLICKHOUSE_URL = second.href
    await replaceProcesses()
    await writeUsers(user + secondUser)
    settings.CLICKHOUSE_URL = first.href
    await replaceProcesses()
    await writeUsers(user)
    await installation.clients.untilServed(30_000)
    for (const gone of [before, second.href]) {
      await expect(page.run('Password of ClickHouse', { SECOND: gone })).rejects.toThrow(/516|AUTHENTICATION_FAILED/)
    }
  })

  it('a surface has two keys until its clients have the new one', async () => {
    const { workspaceId, surfaceId } = installation.secrets
    const place = ['--workspace', workspaceId, '--surface', surfaceId]
    const { stdout } = await cli(['key', 'create', ...place, '--kind', 'public', '--json'])
    const { id, secret } = (JSON.parse(stdout) as { key: { id: string; secret: string } }).key
    expect([await statusWith(secret), await statusWith(installation.secrets.publicKey)]).toEqual([200, 200])
    expect(await cli(['key', 'revoke', ...place, '--key', id])).toMatchObject({ code: 0 })
    await until('the key is refused', async () => (await statusWith(secret)) === 401)
    expect(await statusWith(installation.secrets.publicKey)).toBe(200)
  })

  it('nothing was refused or lost', { timeout: ROTATED_MS }, async () => {
    await installation.expectExactLedger()
    // 400 and 401 are the answers to requests that have to be refused. A busy machine answers later than clients wait.
    const expected = ['200', '400', '401', 'TimeoutError']
    expect(Object.keys(installation.clients.ledger.answers()).filter(answer => !expected.includes(answer))).toEqual([])
  })
})

describe('sessions end', () => {
  it('when AUTH_PUBLIC_KEY is another one', async () => {
    const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' })
    const bearer = await session()
    expect(await withApi({}, url => surfaces(url, bearer))).toBe(200)
    expect(await withApi({ AUTH_PUBLIC_KEY: String(other) }, url => surfaces(url, bearer))).toBe(401)
  })

  it('when the key of npm start is replaced, which keeps the workspace', async () => {
    const dir = join(installation.services.dir, 'local')
    await mkdir(dir)
    const before = await loadSecrets(dir)
    const pageOfStart = await installation.openPage('../../deploy/local/README.md', { LOCAL_DIR: dir })
    await pageOfStart.run('Key of sessions')
    const after = await loadSecrets(dir)
    const verified = async (token: string) => jwtVerify(token, await importSPKI(after.authPublicKey, 'EdDSA'))
    await expect(verified(before.sessionToken)).rejects.toThrow()
    expect((await verified(after.sessionToken)).payload).toMatchObject({ org: 'local' })
    const { authPrivateKey: _, authPublicKey: __, sessionToken: ___, ...kept } = before
    expect(after).toMatchObject(kept)
    expect(page.left()).toEqual([])
    expect(pageOfStart.left()).toEqual([])
  })
})

/** The part of the id of a receipt that depends on the secret and the surface alone. */
const tagOf = (id: string) => id.slice('rct_'.length + 28, 'rct_'.length + 44)

/** Sends an empty export with a public key, and returns the status of the answer. */
async function statusWith(publicKey: string): Promise<number> {
  const headers = { 'content-type': 'application/json', 'x-service-public-key': publicKey }
  const response = await fetch(`${installation.edgeUrl}/drain/v1/logs`, { method: 'POST', headers, body: EMPTY })
  await response.arrayBuffer()
  return response.status
}

/** Makes a key pair of an identity provider. */
function sessionKey(kid: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const payload = { iss: ISSUER, aud: AUDIENCE, sub: installation.secrets.userId, org: 'local' }
  return {
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'EdDSA' },
    sign: () => new SignJWT(payload).setProtectedHeader({ alg: 'EdDSA', kid }).setExpirationTime('1h').sign(privateKey),
  }
}

/** Connects to a Redis, and returns the answer to PING or the error. */
async function answerOf(url: string): Promise<string> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 })
  let fault = ''
  redis.on('error', error => {
    fault = error.message
  })
  try {
    await redis.connect()
    return await redis.ping()
  } catch (error) {
    return `${fault} ${(error as Error).message}`
  } finally {
    redis.disconnect()
  }
}
