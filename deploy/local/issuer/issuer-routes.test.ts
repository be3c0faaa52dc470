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
/** The answer to a step of a page. */
interface PageAnswer {
  readonly location?: string
  readonly session?: string
  readonly text?: string
  readonly isRefused?: boolean
}

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

  const visit = (path: string) => fetch(address + path, { redirect: 'manual' })
  /** Takes a step as the page of the issuer does. */
  async function take(step: string, fields: Record<string, string>, session = '') {
    const response = await fetch(`${address}/${step}`, {
      method: 'POST',
      body: new URLSearchParams({ ...fields, session }),
    })
    expect(response.headers.get('set-cookie')).toBeNull()
    return { status: response.status, ...((await response.json()) as PageAnswer) }
  }
  const open = (code: string, session?: string) => take('open', { code }, session)

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
  const authorize = (changes: Partial<Record<keyof typeof request | 'prompt', string>>, session?: string) =>
    take('authorize', { ...request, ...changes }, session)
  const parametersOf = ({ location = '' }: PageAnswer) => {
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
    const { status, location, session = '' } = await open(await createLink(directory))
    expect({ status, location }).toEqual({ status: 200, location: REDIRECT })
    return session
  }

  it('opens one session with a link, also when two ask at once', async () => {
    const code = await createLink(directory)
    // The page alone uses nothing up: a program that looks at the address of a link must not take it away.
    expect((await visit(`/open?code=${code}`)).status).toBe(200)
    const answers = await Promise.all([1, 2].map(() => open(code)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 410])
    expect(answers.filter(({ session }) => session !== undefined)).toHaveLength(1)
    expect((await open(code)).session).toBeUndefined()
  })

  it('leads to the console with a used link where the browser is signed in, else states how to get another', async () => {
    const session = await openSession()
    const code = await createLink(directory)
    await open(code)
    expect(await open(code, session)).toEqual({ status: 200, location: REDIRECT })
    for (const sent of ['', `${session}x`]) {
      expect(await open(code, sent)).toMatchObject({
        status: 410,
        isRefused: true,
        text: expect.stringContaining('run:'),
      })
    }
    expect(await (await visit('/open')).text()).toContain('npm run console:link')
  })

  it('keeps no code of a link, and opens nothing with an old or a made-up one', async () => {
    const code = await createLink(directory)
    expect((await readdir(join(directory, 'sign-in-links'))).join()).not.toContain(code)
    clockMs += 2 * DAY_MS
    for (const tried of [code, 'made-up', '', '../../secrets']) {
      expect((await open(tried)).status).toBe(410)
    }
  })

  it('gives a session token of the API for a code, once, and an id token for the nonce', async () => {
    const { code = '', state, iss } = parametersOf(await authorize({}, await openSession()))
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
    const session = await openSession()
    const page = (changes: object) => visit(`/authorize?${new URLSearchParams({ ...request, ...changes })}`)
    for (const redirect_uri of ['https://evil.example/', `${REDIRECT}x`, `${BASE}.evil.example/console/`, '']) {
      const taken = await authorize({ redirect_uri }, session)
      expect([taken.status, taken.location]).toEqual([400, undefined])
      const response = await page({ redirect_uri })
      expect({ status: response.status, location: response.headers.get('location') }).toEqual({
        status: 400,
        location: null,
      })
    }
    expect((await authorize({ client_id: 'other' }, session)).status).toBe(400)
    const atLocalhost = await page({ redirect_uri: REDIRECT.replace('127.0.0.1', 'localhost') })
    expect(atLocalhost.headers.get('location')).toBe(REDIRECT)
    expect(parametersOf(await authorize({ code_challenge_method: 'plain' }, session))).toMatchObject({
      error: 'invalid_request',
    })
  })

  it('asks for a link without a session, or with one that has ended, is changed or is an access token', async () => {
    const session = await openSession()
    const { code = '' } = parametersOf(await authorize({}, session))
    const { access_token } = (await (await exchange({ code })).json()) as { access_token: string }
    for (const sent of ['', `${session}x`, access_token]) {
      expect((await authorize({}, sent)).status).toBe(401)
    }
    expect(parametersOf(await authorize({ prompt: 'none' }))).toMatchObject({ error: 'login_required' })
    clockMs += 31 * DAY_MS
    expect((await authorize({}, session)).status).toBe(401)
  })

  it('takes no step by GET, and lets no page of another origin read one', async () => {
    const session = await openSession()
    const headers = { origin: 'http://127.0.0.1:9', cookie: `penstock-session=${session}` }
    const shown = await fetch(`${address}/authorize?${new URLSearchParams({ ...request, session })}`, { headers })
    expect(await shown.text()).toContain('data-step="authorize"')
    for (const step of ['authorize', 'open', 'allow']) {
      const body = new URLSearchParams({ ...request, session })
      const taken = await fetch(`${address}/${step}`, { method: 'POST', body, headers })
      expect(taken.headers.get('access-control-allow-origin')).toBeNull()
    }
  })
})
