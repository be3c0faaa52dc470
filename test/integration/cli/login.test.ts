import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { createIssuerRoutes } from '../../../deploy/local/issuer/issuer-routes.ts'
import { createLink } from '../../../deploy/local/issuer/links.ts'
import { freePort } from '../../../deploy/local/ports.ts'
import { AUTH_AUDIENCE, AUTH_ISSUER, loadSecrets } from '../../../deploy/local/workspace/secrets.ts'
import { MIB } from '../../../schemas/units.ts'
import { createHttpServer, type HttpServer } from '../../../shared/http/server/server.ts'
import { createDatabase, putWorkspace, startApi, type TestApi } from '../../support/services/api.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const DATABASE = `login_${process.pid}`
const services = { ...sharedServices(), redisUrl: `${sharedServices().redisUrl}/3` }

let directory: string
let client: ClickHouseClient
let api: TestApi
let issuer: HttpServer
let session = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-login-'))
  const secrets = await loadSecrets(directory)
  client = await createDatabase(services.clickhouseUrl, DATABASE)
  const workspace = { id: secrets.workspaceId, slug: secrets.workspaceSlug, userId: secrets.userId }
  await putWorkspace(services.redisUrl, workspace)
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  api = await startApi(services, DATABASE, {
    AUTH_PUBLIC_KEY: secrets.authPublicKey,
    AUTH_ISSUER,
    AUTH_AUDIENCE,
    CONSOLE_ISSUER: `${baseUrl}/local-issuer`,
  })
  const routes = await createIssuerRoutes({
    ...{ identity: secrets, directory, baseUrl, now: Date.now },
    consoleOrigins: [baseUrl, api.baseUrl],
  })
  issuer = createHttpServer({ routes, logger: pino({ level: 'silent' }), heldBodyLimitBytes: MIB })
  await issuer.listen('127.0.0.1', port)
  session = (await take(`${baseUrl}/local-issuer/open`, { code: await createLink(directory) })).session ?? ''
})
afterAll(async () => {
  await issuer?.close(1_000)
  await api?.stop()
  await client?.command({ query: `DROP DATABASE ${DATABASE}` })
  await client?.close()
  await rm(directory, { recursive: true, force: true })
})

/** Takes a step as the page of the issuer does. */
async function take(address: string | URL, fields: object): Promise<{ status: number } & Record<string, string>> {
  const body = new URLSearchParams({ session, ...fields })
  const response = await fetch(address, { method: 'POST', body })
  return { status: response.status, ...((await response.json()) as Record<string, string>) } as never
}

/** Does as a browser whose user allows what a program asks for. Returns the address to which it is led. */
async function allow(address: string | URL): Promise<string> {
  const { request } = await take(address, Object.fromEntries(new URL(address).searchParams))
  const { location = '' } = await take(new URL('/local-issuer/allow', address), { request })
  return location
}

const environment = (more: Record<string, string> = {}) => ({
  ...{ PATH: process.env.PATH, HOME: directory, LOCAL_DIR: join(directory, 'nowhere') },
  ...more,
})

function run(words: readonly string[], more: Record<string, string> = {}) {
  return new Promise<{ code: number; output: string }>(resolve => {
    execFile(process.execPath, [MAIN, ...words], { cwd: tmpdir(), env: environment(more) }, (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: out + err }),
    )
  })
}

const ended = (child: ChildProcess) => new Promise<number | null>(resolve => child.once('close', resolve))

it('login signs a user in with a browser, reads renew the session, and logout ends it', async () => {
  const at = ['--url', api.baseUrl]
  expect(await run(['findings', ...at])).toMatchObject({
    code: 2,
    output: expect.stringContaining('run "login" first'),
  })
  const child = spawn(process.execPath, [MAIN, 'login', ...at], { cwd: tmpdir(), env: environment() })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', text => {
      output += text
    })
  const code = ended(child)
  const address = await until('an address is printed', () => /http:\S+authorize\S+/.exec(output)?.[0])
  expect((await fetch(await allow(address))).status).toBe(200)
  expect({ code: await code, output }).toMatchObject({ code: 0, output: expect.stringContaining('You are signed in') })

  const file = join(directory, '.config/penstock/sessions.json')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const kept = async () => JSON.parse(await readFile(file, 'utf8')).sessions[0]
  expect(await run(['findings', ...at])).toMatchObject({ code: 0 })
  expect(await run(['findings'])).toMatchObject({ code: 0 })
  expect(await run(['findings', ...at], { PENSTOCK_TOKEN: 'x' })).toMatchObject({ code: 1 })

  const change = async (more: object) => writeFile(file, JSON.stringify({ sessions: [{ ...(await kept()), ...more }] }))
  await change({ expiresAtMs: 0, accessToken: 'old' })
  expect(await run(['findings', ...at])).toMatchObject({ code: 0 })
  expect((await kept()).expiresAtMs).toBeGreaterThan(Date.now())
  await change({ expiresAtMs: 0, refreshToken: 'old' })
  expect(await run(['findings', ...at])).toMatchObject({
    code: 2,
    output: expect.stringContaining('run "login" again'),
  })

  expect(await run(['logout', ...at])).toMatchObject({ code: 0 })
  expect(await run(['logout', ...at])).toMatchObject({ code: 3 })
  expect(await run(['findings', ...at])).toMatchObject({ code: 2 })
})

it('an agent signs in through the metadata of /mcp', async () => {
  let authorization: URL | undefined
  let [verifier, information, tokens]: [string, unknown, unknown] = ['', undefined, undefined]
  const provider = {
    redirectUrl: 'http://127.0.0.1:1/callback',
    clientMetadata: { client_name: 'tests', redirect_uris: ['http://127.0.0.1:1/callback'] },
    clientInformation: () => information,
    saveClientInformation: (saved: unknown) => {
      information = saved
    },
    tokens: () => tokens,
    saveTokens: (saved: unknown) => {
      tokens = saved
    },
    redirectToAuthorization: (url: URL) => {
      authorization = url
    },
    saveCodeVerifier: (saved: string) => {
      verifier = saved
    },
    codeVerifier: () => verifier,
  } as unknown as OAuthClientProvider
  const transport = () => new StreamableHTTPClientTransport(new URL(`${api.baseUrl}/mcp`), { authProvider: provider })
  const agent = () => new Client({ name: 'tests', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
  const first = transport()
  await expect(agent().connect(first)).rejects.toThrow()
  expect(authorization?.searchParams.get('resource')).toBe(`${api.baseUrl}/mcp`)
  await first.finishAuth(new URL(await allow(authorization ?? '')).searchParams)
  const signedIn = agent()
  await signedIn.connect(transport())
  expect((await signedIn.listTools()).tools.length).toBeGreaterThan(5)
  await signedIn.close()
})

it('names the metadata in each challenge, below the address that the client used', async () => {
  const challengeOf = async (path: string, init: RequestInit = {}) =>
    (await fetch(api.baseUrl + path, init)).headers.get('www-authenticate')
  const metadata = `${api.baseUrl}/.well-known/oauth-protected-resource`
  expect(await challengeOf('/mcp', { method: 'POST', body: '{}' })).toBe(
    `Bearer realm="penstock", resource_metadata="${metadata}/mcp"`,
  )
  expect(await challengeOf('/v3/findings', { headers: { authorization: 'Bearer x' } })).toBe(
    `Bearer realm="penstock", error="invalid_token", resource_metadata="${metadata}"`,
  )
  for (const path of ['', '/mcp']) {
    const document = await (await fetch(metadata + path)).json()
    expect(document).toMatchObject({ resource: api.baseUrl + path, penstock_client_id: 'penstock-console' })
  }
})

it('the issuer gives no token for another resource, or to a program that its user has not allowed', async () => {
  const metadata = await (await fetch(`${api.baseUrl}/.well-known/oauth-protected-resource`)).json()
  const [address] = (metadata as { authorization_servers: string[] }).authorization_servers
  const asked = {
    ...{ client_id: 'penstock-console', response_type: 'code', state: 's', code_challenge_method: 'S256' },
    ...{ redirect_uri: 'http://127.0.0.1:1/callback', code_challenge: 'x'.repeat(43) },
  }
  const authorize = (more: object) => take(`${address}/authorize`, { ...asked, ...more })
  expect((await authorize({ resource: 'https://other.example/mcp' })).location).toContain('error=invalid_target')
  expect((await authorize({ session: '' })).status).toBe(401)
  const { request } = await authorize({})
  const follow = (more = {}) => take(`${address}/allow`, { request, ...more })
  expect((await follow({ session: '' })).status).toBe(410)
  expect((await follow()).status).toBe(200)
  expect((await follow()).status).toBe(410)
})
