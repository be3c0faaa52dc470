import { createHmac, generateKeyPairSync, type KeyObject, type KeyPairKeyObjectResult } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MINUTE_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { type Answer, AUDIENCE, call, ISSUER, putWorkspace, startApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const WORKLOAD_ISSUER = 'https://workloads.test'
const WORKLOAD_AUDIENCE = 'penstock-workloads'

const slug = newId('ws').replace('_', '-')
const otherSlug = newId('ws').replace('_', '-')

/** A JWKS endpoint that publishes the given keys, or fails. */
class Issuer {
  readonly pairs = new Map<string, KeyPairKeyObjectResult>()
  isAway = false
  /** Text that is sent instead of the set. */
  nonsense: string | undefined
  fetches = 0
  readonly #server: Server = createServer(async (_, response) => {
    this.fetches++
    if (this.isAway) return void response.writeHead(502).end('bad gateway')
    if (this.nonsense !== undefined) return void response.end(this.nonsense)
    const keys = [...this.pairs].map(async ([kid, pair]) => ({ ...(await exportJWK(pair.publicKey)), kid }))
    response.end(JSON.stringify({ keys: await Promise.all(keys) }))
  })

  async start(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/jwks.json`
  }
  stop(): Promise<unknown> {
    this.#server.closeAllConnections()
    return new Promise(resolve => this.#server.close(resolve))
  }
}

const ed25519 = () => generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

describe('sign-in with a JWKS', () => {
  const services = sharedServices()
  const stops: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    await putWorkspace(services.redisUrl, { id: newId('ws'), slug })
    await putWorkspace(services.redisUrl, { id: newId('ws'), slug: otherSlug, userId: 'somebody-else' })
  })
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  /** Starts an API with its own issuers and with a clock that moves only when the test moves it. */
  async function start() {
    const sessions = new Issuer()
    const workloads = new Issuer()
    stops.push(
      () => sessions.stop(),
      () => workloads.stop(),
    )
    let nowMs = Date.now()
    const settings = {
      AUTH_PUBLIC_KEY: undefined,
      AUTH_JWKS_URL: await sessions.start(),
      WORKLOAD_ISSUER,
      WORKLOAD_AUDIENCE,
      WORKLOAD_JWKS_URL: await workloads.start(),
    }
    const api = await startApi(services, 'default', settings, () => nowMs)
    stops.push(() => api.stop())

    const nowSeconds = () => Math.floor(nowMs / 1_000)
    const userClaims = () => ({ iss: ISSUER, aud: AUDIENCE, sub: 'user_1', org: slug, exp: nowSeconds() + 3_600 })
    const workloadClaims = () => ({ ...userClaims(), iss: WORKLOAD_ISSUER, aud: WORKLOAD_AUDIENCE, sub: 'job-7' })
    return {
      sessions,
      workloads,
      nowSeconds,
      pass: (ms: number) => {
        nowMs += ms
      },
      userClaims,
      workloadClaims,
      ask: (bearer: string, operation = 'GET /v3/surfaces', body?: unknown): Promise<Answer> =>
        call(api.baseUrl, operation, { bearer, body }),
    }
  }

  const sign = (claims: object, kid: string, key: KeyObject, alg = 'EdDSA', header: object = {}) =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg, kid, ...header }).sign(key)
  const publish = (issuer: Issuer, kid: string, pair = ed25519()) => {
    issuer.pairs.set(kid, pair)
    return pair.privateKey
  }

  it('accepts a new key at once without a restart, and refuses a withdrawn key when the set is ten minutes old', async () => {
    const { sessions, ask, pass, userClaims } = await start()
    const first = await sign(userClaims(), 'k1', publish(sessions, 'k1'))
    expect((await ask(first)).status).toBe(200)
    expect(sessions.fetches).toBe(1)
    const second = await sign(userClaims(), 'k2', publish(sessions, 'k2'))
    expect((await ask(second)).status).toBe(200)
    expect((await ask(first)).status).toBe(200)
    expect(sessions.fetches).toBe(2)

    sessions.pairs.delete('k1')
    pass(10 * MINUTE_MS)
    expect((await ask(second)).status).toBe(200)
    expect(await ask(first)).toMatchObject({ status: 401, body: { code: 'AUTH_MISSING' } })
  })

  it('refuses a withdrawn key after the first token of a new key', async () => {
    const { sessions, ask, userClaims } = await start()
    const first = await sign(userClaims(), 'k1', publish(sessions, 'k1'))
    expect((await ask(first)).status).toBe(200)
    sessions.pairs.clear()
    const second = await sign(userClaims(), 'k2', publish(sessions, 'k2'))
    expect((await ask(second)).status).toBe(200)
    expect((await ask(first)).status).toBe(401)
  })

  it('limits the fetches that tokens with invented key ids cause', async () => {
    const { sessions, ask, pass, userClaims } = await start()
    const known = await sign(userClaims(), 'k1', publish(sessions, 'k1'))
    const stranger = ed25519().privateKey
    const codes: string[] = []
    for (let i = 0; i < 30; i++) {
      const answer = await ask(await sign(userClaims(), `made-up-${i}`, stranger))
      codes.push((answer.body as { code: string }).code)
    }
    expect(codes.slice(0, 4)).toEqual(Array(4).fill('AUTH_MISSING'))
    expect(codes.slice(6)).toEqual(Array(24).fill('INGEST_INFRA_UNAVAILABLE'))
    expect(sessions.fetches).toBeLessThanOrEqual(6)
    expect((await ask(known)).status).toBe(200)
    // A key that was added meanwhile is not called unpublished before the set was fetched again.
    const rotated = await sign(userClaims(), 'k2', publish(sessions, 'k2'))
    const early = await ask(rotated)
    expect(early).toMatchObject({ status: 503, body: { code: 'INGEST_INFRA_UNAVAILABLE' } })
    expect(early.headers.get('retry-after')).toBe('5')
    pass(10_000)
    expect((await ask(rotated)).status).toBe(200)
  })

  it('keeps known keys for an hour while the issuer is unavailable, and returns 503 instead of 401 for an unknown key', async () => {
    const { sessions, ask, pass, userClaims } = await start()
    const key = publish(sessions, 'k1')
    expect((await ask(await sign(userClaims(), 'k1', key))).status).toBe(200)
    sessions.isAway = true
    const unknown = await ask(await sign(userClaims(), 'k2', ed25519().privateKey))
    expect(unknown).toMatchObject({ status: 503, body: { code: 'INGEST_INFRA_UNAVAILABLE' } })
    expect(unknown.headers.get('retry-after')).toBe('5')
    pass(50 * MINUTE_MS)
    expect((await ask(await sign(userClaims(), 'k1', key))).status).toBe(200)
    pass(11 * MINUTE_MS)
    expect((await ask(await sign(userClaims(), 'k1', key))).status).toBe(503)
    sessions.isAway = false
    pass(MINUTE_MS)
    expect((await ask(await sign(userClaims(), 'k1', key))).status).toBe(200)
  })

  it.each([
    ['no JSON', '<html>'],
    ['no set', '{"keys":{}}'],
    ['endless', `{"keys":[],"x":"${'x'.repeat(300_000)}"}`],
  ])('returns 503 when the issuer publishes %s', async (_, nonsense) => {
    const { sessions, ask, userClaims } = await start()
    const token = await sign(userClaims(), 'k1', publish(sessions, 'k1'))
    sessions.nonsense = nonsense
    expect((await ask(token)).status).toBe(503)
    sessions.nonsense = undefined
    expect((await ask(token)).status).toBe(200)
  })

  it('refuses tokens that choose their own key or algorithm', async () => {
    const { sessions, ask, userClaims } = await start()
    const key = publish(sessions, 'k1')
    sessions.pairs.set('r1', rsa)
    const own = ed25519()
    const jwk = await exportJWK(own.publicKey)
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const unsigned = `${part({ alg: 'none', kid: 'k1' })}.${part(userClaims())}.`
    const hmac = (secret: string | Buffer, kid: string) => {
      const text = `${part({ alg: 'HS256', kid })}.${part(userClaims())}`
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
    }
    const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' })
    const der = rsa.publicKey.export({ type: 'spki', format: 'der' })
    const good = await sign(userClaims(), 'k1', key)
    const [head, , signature] = good.split('.')
    const refused = {
      'alg none': unsigned,
      'alg none, with the signature of another': `${unsigned}${signature}`,
      'alg NoNe': `${part({ alg: 'NoNe', kid: 'k1' })}.${part(userClaims())}.`,
      'HS256 with the PEM of the public key': hmac(pem, 'r1'),
      'HS256 with the DER of the public key': hmac(der, 'r1'),
      'HS256 with the coordinates of the public key': hmac(Buffer.from(jwk.x ?? '', 'base64url'), 'k1'),
      'an embedded key': await sign(userClaims(), 'k1', own.privateKey, 'EdDSA', { jwk }),
      'an embedded key without an id': await sign(userClaims(), '', own.privateKey, 'EdDSA', { jwk }),
      'a key at an address of its own': await sign(userClaims(), 'k1', own.privateKey, 'EdDSA', {
        jku: 'http://127.0.0.1:1/jwks.json',
      }),
      'PS256 by a published RSA key': await sign(userClaims(), 'r1', rsa.privateKey, 'PS256'),
      'RS512 by a published RSA key': await sign(userClaims(), 'r1', rsa.privateKey, 'RS512'),
      'RS256 that names the key of EdDSA': await sign(userClaims(), 'k1', rsa.privateKey, 'RS256'),
      'an unknown critical header': `${part({ alg: 'EdDSA', kid: 'k1', crit: ['exp'], exp: 1 })}.${good.split('.').slice(1).join('.')}`,
      'a payload that is not encoded': `${part({ alg: 'EdDSA', kid: 'k1', crit: ['b64'], b64: false })}.${good.split('.').slice(1).join('.')}`,
      'claims changed after the signature': `${head}.${part({ ...userClaims(), sub: 'somebody-else', org: otherSlug })}.${signature}`,
      'a fourth part': `${good}.${signature}`,
    }
    for (const [what, token] of Object.entries(refused)) {
      const answer = await ask(token)
      expect({ what, ...answer }).toMatchObject({ what, status: 401, body: { code: 'AUTH_MISSING' } })
      expect(JSON.stringify(answer.body)).not.toContain(token.slice(0, 40))
    }
    expect((await ask(good)).status).toBe(200)
    expect((await ask(await sign(userClaims(), 'r1', rsa.privateKey, 'RS256'))).status).toBe(200)
  })

  it('tolerates clocks that differ by five seconds, and not more', async () => {
    const { sessions, ask, userClaims, nowSeconds } = await start()
    const key = publish(sessions, 'k1')
    const status = async (claims: object) => (await ask(await sign({ ...userClaims(), ...claims }, 'k1', key))).status
    expect(await status({ exp: nowSeconds() - 4 })).toBe(200)
    expect(await status({ exp: nowSeconds() - 5 })).toBe(401)
    expect(await status({ nbf: nowSeconds() + 5 })).toBe(200)
    expect(await status({ nbf: nowSeconds() + 6 })).toBe(401)
    expect(await status({ exp: undefined })).toBe(401)
    expect(await status({ exp: 'never' })).toBe(401)
  })

  it('accepts exactly the configured issuer and audience', async () => {
    const { sessions, workloads, ask, userClaims, workloadClaims } = await start()
    const key = publish(sessions, 'k1')
    const workloadKey = publish(workloads, 'k1')
    const status = async (claims: object, by = key) => (await ask(await sign(claims, 'k1', by))).status
    for (const change of [
      { iss: `${ISSUER}/` },
      { iss: [ISSUER] },
      { iss: undefined },
      { aud: 'penstock2' },
      { aud: [] },
      { aud: undefined },
      { aud: WORKLOAD_AUDIENCE },
    ]) {
      expect(await status({ ...userClaims(), ...change }), JSON.stringify(change)).toBe(401)
    }
    expect(await status({ ...userClaims(), aud: ['elsewhere', AUDIENCE] })).toBe(200)
    // A token of one issuer is not accepted for the other.
    expect(await status(userClaims(), workloadKey)).toBe(401)
    expect(await status(workloadClaims(), key)).toBe(401)
    expect(await status(workloadClaims(), workloadKey)).toBe(200)
  })

  it('lets a workload read the data of its organization and change nothing', async () => {
    const { workloads, ask, workloadClaims } = await start()
    const key = publish(workloads, 'w1')
    const token = await sign(workloadClaims(), 'w1', key)
    expect((await ask(token)).status).toBe(200)
    const idempotencyKey = '0af76519-16cd-43dd-8448-eb211c80319c'
    const apiKeys = `/v3/workspaces/${slug}/api-keys`
    const writes: [string, unknown?][] = [
      ['POST /v3/surfaces', { name: 'made by a workload' }],
      ['DELETE /v3/surfaces/srf_1'],
      ['POST /v3/surfaces/srf_1/keys', { kind: 'public' }],
      ['DELETE /v3/surfaces/srf_1/keys/key_1'],
      [`POST ${apiKeys}`, { idempotencyKey, name: 'k', scopes: ['org:surfaces:read'], secondsUntilExpiration: null }],
      [`GET ${apiKeys}`],
      [`DELETE ${apiKeys}/key_1`],
    ]
    for (const [operation, body] of writes) {
      const answer = await ask(token, operation, body)
      expect({ operation, ...answer }).toMatchObject({ operation, status: 403, body: { code: 'PERMISSION_DENIED' } })
    }
    const elsewhere = await sign({ ...workloadClaims(), org: otherSlug }, 'w1', key)
    expect((await ask(elsewhere)).body).toEqual({ surfaces: [], nextCursor: null })
    const nowhere = await sign({ ...workloadClaims(), org: undefined }, 'w1', key)
    expect(await ask(nowhere)).toMatchObject({ status: 403, body: { code: 'AUTH_ORG_REQUIRED' } })
  })

  it('requires an organization that the user is a member of', async () => {
    const { sessions, ask, userClaims } = await start()
    const key = publish(sessions, 'k1')
    const askAs = async (claims: object, operation?: string) =>
      ask(await sign({ ...userClaims(), ...claims }, 'k1', key), operation)
    const apiKeysOf = (name: string) => `GET /v3/workspaces/${name}/api-keys`
    for (const operation of ['GET /v3/surfaces', 'GET /v3/findings', apiKeysOf(slug)]) {
      const answer = await askAs({ org: undefined }, operation)
      expect(answer).toMatchObject({ status: 403, body: { code: 'AUTH_ORG_REQUIRED' } })
    }
    const absent = await askAs({ org: 'no-such-workspace' })
    expect(absent).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    expect((await askAs({ org: otherSlug })).body).toEqual(absent.body)
    expect((await askAs({ sub: 'nobody' })).body).toEqual(absent.body)
    // If the path names a workspace, the token must be for that workspace.
    expect((await askAs({}, apiKeysOf(slug))).status).toBe(200)
    const elsewhere = await askAs({}, apiKeysOf('no-such-workspace'))
    expect(elsewhere).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    for (const name of [otherSlug, '..%2Fx', slug.toUpperCase()]) {
      expect((await askAs({}, apiKeysOf(name))).body).toEqual(elsewhere.body)
    }
    expect((await askAs({ org: otherSlug }, apiKeysOf(otherSlug))).body).toEqual(elsewhere.body)
  })
})
