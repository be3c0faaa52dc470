import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { SignJWT } from 'jose'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  surfaceCreatedSchema,
  surfaceKeyCreatedSchema,
  workspaceKeyCreatedSchema,
} from '../../../schemas/http/workspaces/schemas.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { directoryKeys } from '../../../shared/directory/record.ts'
import { digestOf, generateKey } from '../../../shared/ids/credentials.ts'
import { contentsOf } from '../../support/oracles/contents-of.ts'
import {
  type Call,
  call,
  FAR_EXPIRY,
  putWorkspace,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'
import { startEdge, type TestEdge } from '../../support/services/edge.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/15`
const PEPPER = 'a pepper that must never be seen again'
const ADDRESS_TOKEN = 'what-the-address-of-keys-may-hold'
const workspaceId = newId('ws')
const slug = workspaceId.replace('_', '-')
const apiKeysPath = `/v3/workspaces/${slug}/api-keys`

const lines: string[] = []
const answers: string[] = []
let redis: Redis
let api: TestApi
let edge: TestEdge

beforeAll(async () => {
  redis = new Redis(redisUrl)
  await redis.flushdb()
  await putWorkspace(redisUrl, { id: workspaceId, slug })
  // This logger has no redaction, which the processes add as a second safety net.
  const logger = pino({ level: 'trace' }, { write: line => lines.push(line) })
  const workloads = {
    WORKLOAD_ISSUER: 'https://workloads.test',
    WORKLOAD_AUDIENCE: 'penstock-workloads',
    WORKLOAD_JWKS_URL: `http://127.0.0.1:1/jwks.json?token=${ADDRESS_TOKEN}`,
  }
  const settings = { ...workloads, KEY_PEPPER: PEPPER }
  api = await startApi({ ...services, redisUrl }, 'default', settings, Date.now, logger)
  edge = await startEdge(redisUrl, {}, logger)
})
afterAll(async () => {
  await edge?.stop()
  await api?.stop()
  redis?.disconnect()
})

async function ask(baseUrl: string, operation: string, request: Call): Promise<number> {
  const { status, body } = await call(baseUrl, operation, request)
  answers.push(JSON.stringify(body))
  return status
}
const askApi = (operation: string, bearer: string, body?: unknown) => ask(api.baseUrl, operation, { bearer, body })
const sendBeat = (key: string) =>
  ask(edge.baseUrl, 'POST /v3/session', { body: { sessionId: 's' }, headers: { 'x-service-public-key': key } })
const register = (bearer: string) => ask(edge.baseUrl, 'POST /v3/releases', { bearer, body: { version: '1' } })

/** A key of each kind of this workspace, as its only response shows it. */
async function makeKeys(bearer: string) {
  const make = async (path: string, body: unknown) => (await call(api.baseUrl, `POST ${path}`, { bearer, body })).body
  const { surface } = surfaceCreatedSchema.parse(await make('/v3/surfaces', { name: 'Shop' }))
  const makeKey = async (body: object) =>
    surfaceKeyCreatedSchema.parse(await make(`/v3/surfaces/${surface.id}/keys`, body)).key
  const request = { idempotencyKey: randomUUID(), name: 'k', scopes: ['org:surfaces:read'], secondsUntilExpiration: 60 }
  const { apiKey } = workspaceKeyCreatedSchema.parse(await make(apiKeysPath, request))
  expect(await make(apiKeysPath, request)).toEqual({ apiKey })
  return {
    surfaceId: surface.id,
    publicKey: await makeKey({ kind: 'public' }),
    secretKey: await makeKey({ kind: 'secret', scopes: ['release:write'] }),
    apiKey,
  }
}

function signWorkload(): Promise<string> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const claims = { iss: 'https://workloads.test', aud: 'penstock-workloads', org: slug, exp: FAR_EXPIRY }
  return new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid: 'w1' }).sign(privateKey)
}

it('no credential but a public key is logged, stored or returned again, whatever happens to its request', async () => {
  const token = await signToken({ org: slug })
  const { surfaceId, publicKey, secretKey, apiKey } = await makeKeys(token)

  expect(await askApi('GET /v3/surfaces', apiKey.secret)).toBe(200)
  expect(await askApi('POST /v3/surfaces', apiKey.secret, {})).toBe(403)
  expect(await askApi('GET /v3/findings', apiKey.secret)).toBe(403)
  expect(await askApi(`GET /v3/surfaces/${surfaceId}/keys`, token)).toBe(200)
  expect(await askApi(`GET ${apiKeysPath}`, token)).toBe(200)
  expect([await sendBeat(publicKey.secret), await register(secretKey.secret)]).toEqual([200, 200])

  // Credentials of the wrong kind, unknown, incomplete, or of an unreachable issuer.
  const [stranger, expired, workload] = [
    await signToken({ org: slug, sub: 'nobody' }),
    await signToken({ org: slug, exp: 1 }),
    await signWorkload(),
  ]
  const unknown = { public: generateKey('public'), secret: generateKey('secret'), workspace: generateKey('workspace') }
  for (const bearer of [secretKey.secret, unknown.workspace, apiKey.secret.slice(0, -1), expired, token.slice(0, -1)]) {
    expect(await askApi('GET /v3/surfaces', bearer)).toBe(401)
  }
  expect(await askApi('GET /v3/surfaces', stranger)).toBe(404)
  expect(await askApi('GET /v3/surfaces', workload)).toBe(503)
  expect([await sendBeat(unknown.public), await register(unknown.secret), await register(token)]).toEqual([
    401, 401, 401,
  ])

  // The stored record of a key or a member is broken, which is an internal error.
  const broken = { public: generateKey('public'), secret: generateKey('secret'), workspace: generateKey('workspace') }
  await redis.rpush(directoryKeys.credential(digestOf(broken.public)), 'x')
  await redis.set(directoryKeys.credential(digestOf(broken.secret)), '{')
  await redis.rpush(directoryKeys.workspaceCredential(digestOf(broken.workspace)), 'x')
  expect([await sendBeat(broken.public), await register(broken.secret)]).toEqual([503, 503])
  const asQuery = `POST /v3/session?public_key=${broken.public}`
  expect(await ask(edge.baseUrl, asQuery, { body: { sessionId: 's' } })).toBe(503)
  expect(await askApi('GET /v3/surfaces', broken.workspace)).toBe(503)
  await redis.set(directoryKeys.surface(workspaceId, surfaceId), '{}')
  expect(await askApi(`GET /v3/surfaces/${surfaceId}/keys`, token)).toBe(500)
  await redis.set(directoryKeys.member(workspaceId, 'user_1'), '{}')
  expect(await askApi('GET /v3/surfaces', token)).toBe(503)

  const shown = { log: lines.join('\n'), store: JSON.stringify(await contentsOf(redis)), answers: answers.join('\n') }
  // Each store has been written to, and identifies keys by values that are not secret.
  expect(shown.log).toContain('a credential could not be checked')
  expect(shown.log).toContain('a key could not be looked up')
  expect(shown.log).toContain('the keys of a token issuer cannot be fetched')
  expect(shown.log).toContain('"address":"http://127.0.0.1:1/jwks.json"')
  expect(shown.log).toContain('a request failed')
  expect(shown.store).toContain(digestOf(apiKey.secret))
  expect(shown.answers).toContain(apiKey.id)
  // Pages show a public key to everyone. The directory and its lists have it, and no log does.
  expect([shown.store, shown.answers].map(text => text.includes(publicKey.secret))).toEqual([true, true])
  expect(shown.log).not.toContain(publicKey.secret.slice(6, 35))
  const keys = [secretKey, apiKey].map(({ secret }) => secret)
  const texts = [...keys, ...Object.values(unknown), ...Object.values(broken)].map(key => key.slice(6, 35))
  const tokens = [token, stranger, expired, workload].flatMap(text => text.split('.').slice(1))
  for (const [where, text] of Object.entries(shown)) {
    for (const hidden of [...texts, ...tokens, PEPPER, ADDRESS_TOKEN]) expect(text.includes(hidden), where).toBe(false)
  }
})
