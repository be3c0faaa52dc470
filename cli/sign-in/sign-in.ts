import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as oauth from 'oauth4webapi'
import { z } from 'zod'
import type { KeptSession } from './kept-sessions.ts'

/** Metadata of the service, which names the provider (docs/api/credentials.md#sign-in). */
const metadataSchema = z.object({
  authorization_servers: z.array(z.string()).min(1),
  scopes_supported: z.array(z.string()).default([]),
  penstock_client_id: z.string(),
  penstock_audience: z.string().optional(),
})
type Metadata = z.infer<typeof metadataSchema>

const METADATA_PATH = '/.well-known/oauth-protected-resource'
const TIMEOUT_MS = 30_000
/** How long a user may take to sign in. */
const SIGN_IN_MS = 5 * 60_000
const CALLBACK_PATH = '/callback'

interface SignInDeps {
  readonly fetch: typeof fetch
  readonly now: () => number
  /** Shows the user the address at which to sign in. */
  readonly show: (url: string) => void
  /** Fires when the command is stopped. */
  readonly stopped: AbortSignal
}

/** Signs in at an installation: the code flow with PKCE, whose code comes to an address of this machine (RFC 8252). */
export async function signIn(deps: SignInDeps, url: string, port: number): Promise<KeptSession> {
  const metadata = await readMetadata(deps, url)
  const [issuer = ''] = metadata.authorization_servers
  const server = await discover(deps, issuer)
  const client: oauth.Client = { client_id: metadata.penstock_client_id, ...signingAlgorithm(server) }
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const waiting = await waitForCode(port, deps.stopped)
  try {
    const { redirectUri } = waiting
    deps.show(await authorizationUrl(server, metadata, { redirectUri, verifier, state }))
    const parameters = oauth.validateAuthResponse(server, client, await waiting.answer, state)
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      oauth.None(),
      parameters,
      redirectUri,
      verifier,
      optionsOf(deps, server.token_endpoint ?? ''),
    )
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, response)
    return sessionOf({ url, issuer, clientId: client.client_id }, tokens, deps.now())
  } finally {
    waiting.close()
  }
}

/** Renews a session. Throws if its issuer does not accept it any more. */
export async function renewSession(
  deps: Pick<SignInDeps, 'fetch' | 'now'>,
  session: KeptSession,
): Promise<KeptSession> {
  const server = await discover(deps, session.issuer)
  const client: oauth.Client = { client_id: session.clientId, ...signingAlgorithm(server) }
  const response = await oauth.refreshTokenGrantRequest(
    server,
    client,
    oauth.None(),
    session.refreshToken ?? '',
    optionsOf(deps, server.token_endpoint ?? ''),
  )
  const tokens = await oauth.processRefreshTokenResponse(server, client, response)
  return sessionOf(session, { refresh_token: session.refreshToken, ...tokens }, deps.now())
}

/** Asks the issuer to end a session, if it has an address for that. */
export async function revokeSession(deps: Pick<SignInDeps, 'fetch'>, session: KeptSession): Promise<void> {
  const server = await discover(deps, session.issuer)
  if (server.revocation_endpoint === undefined || session.refreshToken === undefined) return
  const client = { client_id: session.clientId }
  const options = optionsOf(deps, server.revocation_endpoint)
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, oauth.None(), session.refreshToken, options),
  )
}

function sessionOf(
  { url, issuer, clientId }: Pick<KeptSession, 'url' | 'issuer' | 'clientId'>,
  tokens: { readonly access_token: string; readonly expires_in?: number; readonly refresh_token?: string | undefined },
  nowMs: number,
): KeptSession {
  const { access_token: accessToken, expires_in: seconds = 300, refresh_token: refreshToken } = tokens
  const expiresAtMs = nowMs + seconds * 1_000
  return { url, issuer, clientId, accessToken, expiresAtMs, ...(refreshToken !== undefined && { refreshToken }) }
}

async function readMetadata(deps: Pick<SignInDeps, 'fetch'>, url: string): Promise<Metadata> {
  const response = await deps.fetch(`${url}${METADATA_PATH}`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const metadata = metadataSchema.safeParse(await response.json().catch(() => undefined))
  if (response.status === 200 && metadata.success) return metadata.data
  throw new Error(`${url} offers no sign-in: set PENSTOCK_TOKEN to an API key`)
}

async function discover(deps: Pick<SignInDeps, 'fetch'>, issuer: string): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer)
  return oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, optionsOf(deps, issuer)))
}

async function authorizationUrl(
  server: oauth.AuthorizationServer,
  metadata: Metadata,
  { redirectUri, verifier, state }: { redirectUri: string; verifier: string; state: string },
): Promise<string> {
  const url = new URL(server.authorization_endpoint ?? '')
  const offline = server.scopes_supported?.includes('offline_access') ? ['offline_access'] : []
  const parameters = {
    client_id: metadata.penstock_client_id,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: [...new Set([...metadata.scopes_supported, ...offline])].join(' '),
    ...(metadata.penstock_audience !== undefined && { audience: metadata.penstock_audience }),
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

/** Options of each request to an issuer. Plain HTTP is for this machine only. */
function optionsOf({ fetch }: Pick<SignInDeps, 'fetch'>, address: string) {
  const { protocol, hostname } = new URL(address)
  const isLocal = protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
  return {
    [oauth.customFetch]: (url: string, options: object) => fetch(url, options),
    signal: () => AbortSignal.timeout(TIMEOUT_MS),
    ...(isLocal && { [oauth.allowInsecureRequests]: true as const }),
  }
}

/** The library expects RS256 unless the client names another algorithm. */
function signingAlgorithm(server: oauth.AuthorizationServer): Partial<oauth.Client> {
  const algorithms = server.id_token_signing_alg_values_supported ?? []
  const [first] = algorithms
  return first === undefined || algorithms.includes('RS256') ? {} : { id_token_signed_response_alg: first }
}

/** A server of this machine that waits for the code. */
interface Waiting {
  readonly redirectUri: string
  /** The address to which the issuer has led the browser. It rejects when the user takes too long. */
  readonly answer: Promise<URL>
  readonly close: () => void
}

async function waitForCode(port: number, stopped: AbortSignal): Promise<Waiting> {
  let receive: (url: URL) => void = () => {}
  const received = new Promise<URL>(resolve => {
    receive = resolve
  })
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    const isAnswer = url.pathname === CALLBACK_PATH
    const text = isAnswer ? 'You can close this page and return to the terminal.' : 'There is nothing here.'
    response.writeHead(isAnswer ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
    response.end(`${text}\n`)
    if (isAnswer) receive(url)
  })
  await listen(server, port)
  const late = AbortSignal.any([AbortSignal.timeout(SIGN_IN_MS), stopped])
  const ended = new Promise<never>((_, reject) => {
    late.addEventListener(
      'abort',
      () => reject(new Error('the sign-in was not completed in time: run the command again')),
      { once: true },
    )
  })
  // Nothing may await it if the sign-in fails before.
  ended.catch(() => {})
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}${CALLBACK_PATH}`,
    answer: Promise.race([received, ended]),
    close: () => server.close(),
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
}
