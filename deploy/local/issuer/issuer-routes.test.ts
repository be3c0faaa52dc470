import { createHash, createPublicKey, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jwtVerify } from 'jose'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DAY_MS, MIB } from '../../../schemas/units.ts'
import { createHttpServer, type HttpServer } from '../../../shared/http/server/server.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, type LocalSecrets, loadSecrets } from '../workspace/secrets.ts'
import { createIssuerRoutes } from './issuer-routes.ts'
import { createLink } from './links.ts'

const BASE = 'http://127.0.0.1:4318'
const ISSUER = `${BASE}/local-issuer`
const REDIRECT = `${BASE}/console/`

describe('the local issuer', () => {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  let directory: string
  let secrets: LocalSecrets
  let server: HttpServer
  let address: string
  let clockMs: number

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'penstock-issuer-'))
    secrets = await loadSecrets(directory)
    const routes = await createIssuerRoutes({
      identity: secrets,
      directory,
      baseUrl: BASE,
      consoleOrigins: [BASE],
      now: () => clockMs,
    })
    server = createHttpServer({ routes, logger: pino({ level: 'silent' }), heldBodyLimitBytes: MIB })
    address = `http://127.0.0.1:${await server.listen('127.0.0.1', 0)}/local-issuer`
  })
  afterAll(async () => {
    await server.close(1_000)
    await rm(directory, { recursive: true })
  })
  beforeEach(() => {
    clockMs = Date.now()
  })

  const visit = (path: string, cookie?: string) =>
    fetch(address + path, { redirect: 'manual', headers: cookie ? { cookie } : {} })

  const request = {
    client_id: 'penstock-console',
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope: 'openid',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    state: 'state\r\nx: y',
    nonce: 'nonce',
  }
  const authorize = (changes: Partial<Record<keyof typeof request | 'prompt', string>>, cookie?: string) =>
    visit(`/authorize?${new URLSearchParams({ ...request, ...changes })}`, cookie)
  const parametersOf = (response: Response) => {
    const location = response.headers.get('location') ?? ''
    expect(location.startsWith(`${REDIRECT}?`)).toBe(true)
    return Object.fromEntries(new URL(location).searchParams)
  }
  const exchange = (form: Record<string, string>) =>
    fetch(`${address}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: 'penstock-console',
        redirect_uri: REDIRECT,
        code_verifier: verifier,
        ...form,
      }),
    })

  async function openSession(): Promise<string> {
    const response = await visit(`/open?code=${await createLink(directory)}`)
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toBe(REDIRECT)
    return (response.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
  }

  it('opens one session with a link, also when two ask at once', async () => {
    const code = await createLink(directory)
    const answers = await Promise.all([1, 2].map(() => visit(`/open?code=${code}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([302, 410])
    const cookie = answers.find(({ status }) => status === 302)?.headers.get('set-cookie')
    expect(cookie).toMatch(/; Path=\/local-issuer; HttpOnly; SameSite=Lax$/)
    expect((await visit(`/open?code=${code}`)).headers.get('set-cookie')).toBeNull()
  })

  it('leads to the console with a used link where the browser is signed in, else states how to get another', async () => {
    const cookie = await openSession()
    const code = await createLink(directory)
    await visit(`/open?code=${code}`)
    const again = await visit(`/open?code=${code}`, cookie)
    expect([again.status, again.headers.get('location'), again.headers.get('set-cookie')]).toEqual([
      302,
      REDIRECT,
      null,
    ])
    for (const sent of [undefined, `${cookie}x`]) {
      const refused = await visit(`/open?code=${code}`, sent)
      expect([refused.status, refused.headers.get('location')]).toEqual([410, null])
      expect(await refused.text()).toContain('npm run console:link')
    }
  })

  it('keeps no code of a link, and opens nothing with an old or a made-up one', async () => {
    const code = await createLink(directory)
    expect((await readdir(join(directory, 'sign-in-links'))).join()).not.toContain(code)
    clockMs += 2 * DAY_MS
    for (const tried of [code, 'made-up', '', '../../secrets']) {
      expect((await visit(`/open?code=${encodeURIComponent(tried)}`)).status).toBe(410)
    }
  })

  it('gives a session token of the API for a code, once, and an id token for the nonce', async () => {
    const cookie = await openSession()
    const { code = '', state, iss } = parametersOf(await authorize({}, `other=1; ${cookie}`))
    expect({ state, iss }).toEqual({ state: request.state, iss: ISSUER })
    const response = await exchange({ code })
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    const tokens = (await response.json()) as { access_token: string; id_token: string; token_type: string }
    const key = createPublicKey(secrets.authPublicKey)
    const access = await jwtVerify(tokens.access_token, key, { issuer: AUTH_ISSUER, audience: AUTH_AUDIENCE })
    expect(access.payload).toMatchObject({ sub: secrets.userId, org: secrets.workspaceSlug })
    const id = await jwtVerify(tokens.id_token, key, { issuer: ISSUER, audience: 'penstock-console' })
    expect(id.payload).toMatchObject({ sub: secrets.userId, nonce: 'nonce' })
    expect(await (await exchange({ code })).json()).toEqual({ error: 'invalid_grant' })
  })

  it.each([
    ['another verifier', { code_verifier: 'x'.repeat(43) }],
    ['another address', { redirect_uri: `${BASE}/elsewhere/` }],
  ])('gives nothing for a code with %s', async (_, form) => {
    const { code = '' } = parametersOf(await authorize({}, await openSession()))
    expect((await exchange({ code, ...form })).status).toBe(400)
    expect((await exchange({ code })).status).toBe(400)
  })

  it('gives nothing for a code that is older than a minute', async () => {
    const { code = '' } = parametersOf(await authorize({}, await openSession()))
    clockMs += 61_000
    expect(await (await exchange({ code })).json()).toEqual({ error: 'invalid_grant' })
  })

  it('redirects to no other address, and names no code there', async () => {
    const cookie = await openSession()
    for (const redirect_uri of ['https://evil.example/', `${REDIRECT}x`, `${BASE}.evil.example/console/`, '']) {
      const response = await authorize({ redirect_uri }, cookie)
      expect({ status: response.status, location: response.headers.get('location') }).toEqual({
        status: 400,
        location: null,
      })
    }
    expect((await authorize({ client_id: 'other' }, cookie)).status).toBe(400)
    const atLocalhost = await authorize({ redirect_uri: REDIRECT.replace('127.0.0.1', 'localhost') }, cookie)
    expect(atLocalhost.headers.get('location')).toBe(REDIRECT)
    expect(parametersOf(await authorize({ code_challenge_method: 'plain' }, cookie))).toMatchObject({
      error: 'invalid_request',
    })
  })

  it('asks for a link without a session, or with one that has ended, is changed or is an access token', async () => {
    const cookie = await openSession()
    const { code = '' } = parametersOf(await authorize({}, cookie))
    const { access_token } = (await (await exchange({ code })).json()) as { access_token: string }
    const name = cookie.split('=', 1)[0]
    for (const sent of [undefined, `${cookie}x`, `${name}=`, `${name}=${access_token}`]) {
      expect((await authorize({}, sent)).status).toBe(401)
    }
    expect(parametersOf(await authorize({ prompt: 'none' }))).toMatchObject({ error: 'login_required' })
    expect((await visit('/end', cookie)).headers.get('set-cookie')).toContain('Max-Age=0')
    clockMs += 31 * DAY_MS
    expect((await authorize({}, cookie)).status).toBe(401)
  })
})
