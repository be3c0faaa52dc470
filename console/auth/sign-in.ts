import { signal } from '@preact/signals'
import * as oauth from 'oauth4webapi'
import { go } from '../state/router.ts'

/** How users are signed in, as the document names it. */
interface SignInSettings {
  readonly issuer: string
  readonly clientId: string
  readonly scope: string
  readonly audience?: string
}

/** State of the sign-in. Its faults are texts for people. */
type SignInState =
  | { readonly is: 'pending' }
  | { readonly is: 'signedIn' }
  | { readonly is: 'failed'; readonly fault: string }

/** The state of the sign-in of this page. */
export const signInState = signal<SignInState>({ is: 'pending' })

/** The token is in memory only: no storage and no cookie has it, so that nothing but this page can use it. */
let accessToken: string | undefined
let endSessionUrl: string | undefined
let signedInAt = 0

const BEGUN = 'penstock.sign-in'

/** A sign-in that has begun, which lives in the storage of this tab until its response arrives. */
interface Begun {
  readonly verifier: string
  readonly state: string
  readonly nonce: string
  /** Address to return to, of this origin. */
  readonly returnTo: string
}

/** Returns the token for a request, or undefined before the sign-in. */
export function tokenOfPage(): string | undefined {
  return accessToken
}

/** Returns the workspace that the token names, which is a JWT of the API (docs/api/credentials.md#credentials), if it names one. */
export function workspaceOfPage(): string | undefined {
  try {
    const [, payload = ''] = accessToken?.split('.') ?? []
    const { org } = JSON.parse(atob(payload.replace(/-/g, '+').replace(/_/g, '/'))) as { org?: unknown }
    return typeof org === 'string' && org !== '' ? org : undefined
  } catch {
    return undefined
  }
}

/**
 * Signs the user in with the code flow and PKCE (RFC 9700): completes a sign-in whose response this page has, else begins one. The
 * session of the issuer makes that a redirect without a question, so a reload and a new tab stay signed in.
 */
export async function signIn(): Promise<void> {
  signInState.value = { is: 'pending' }
  try {
    if (!globalThis.isSecureContext) {
      throw new Error('The console needs https, or an address of this machine: browsers sign in nowhere else.')
    }
    const parameters = new URLSearchParams(location.search)
    const begun = takeBegun()
    const isResponse = parameters.has('state') && (parameters.has('code') || parameters.has('error'))
    if (isResponse && begun?.state === parameters.get('state')) await complete(begun, new URL(location.href))
    else await begin(isResponse ? '/console/' : location.pathname + location.search + location.hash)
  } catch (error) {
    signInState.value = { is: 'failed', fault: faultOf(error) }
  }
}

/** How long after a sign-in a refused token means that the next one would be refused too. */
const FRESH_MS = 60_000

/**
 * Signs in again when the API refuses the token, which has expired, and returns to the same address. A token that was given just
 * before would be refused forever, so that the page states it instead.
 */
export function refuseToken(): void {
  if (accessToken === undefined) return
  accessToken = undefined
  if (performance.now() - signedInAt > FRESH_MS) void signIn()
  else signInState.value = { is: 'failed', fault: 'The service does not accept the token that the issuer gives.' }
}

/** Forgets the token and ends the session of the issuer, if it has an address for that. */
export function signOut(): void {
  accessToken = undefined
  if (endSessionUrl) location.assign(endSessionUrl)
  else signInState.value = { is: 'failed', fault: 'You are signed out.' }
}

async function begin(returnTo: string): Promise<void> {
  const settings = readSettings()
  const server = await discover(settings)
  const begun: Begun = {
    verifier: oauth.generateRandomCodeVerifier(),
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    returnTo,
  }
  const url = new URL(server.authorization_endpoint ?? '')
  const parameters = {
    client_id: settings.clientId,
    redirect_uri: redirectUri(),
    response_type: 'code',
    scope: settings.scope,
    ...(settings.audience && { audience: settings.audience }),
    code_challenge: await oauth.calculatePKCECodeChallenge(begun.verifier),
    code_challenge_method: 'S256',
    state: begun.state,
    ...(isOpenId(settings) && { nonce: begun.nonce }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  sessionStorage.setItem(BEGUN, JSON.stringify(begun))
  location.replace(url)
}

async function complete(begun: Begun, url: URL): Promise<void> {
  go(begun.returnTo, { replace: true })
  const settings = readSettings()
  const server = await discover(settings)
  const client: oauth.Client = { client_id: settings.clientId, ...signingAlgorithm(server) }
  const parameters = oauth.validateAuthResponse(server, client, url, begun.state)
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    redirectUri(),
    begun.verifier,
    insecureIfLocal(server.token_endpoint ?? ''),
  )
  const expected = isOpenId(settings) ? { expectedNonce: begun.nonce, requireIdToken: true } : {}
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, expected)
  accessToken = tokens.access_token
  signedInAt = performance.now()
  endSessionUrl = server.end_session_endpoint
  signInState.value = { is: 'signedIn' }
}

async function discover({ issuer }: SignInSettings): Promise<oauth.AuthorizationServer> {
  const url = new URL(issuer)
  const response = await oauth.discoveryRequest(url, insecureIfLocal(issuer))
  return oauth.processDiscoveryResponse(url, response)
}

/** Allows plain HTTP to this machine only. */
function insecureIfLocal(address: string): { [oauth.allowInsecureRequests]?: true } {
  const { protocol, hostname } = new URL(address)
  const isLocal = protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
  return isLocal ? { [oauth.allowInsecureRequests]: true } : {}
}

/** The library expects RS256 unless the client names another algorithm. */
function signingAlgorithm(server: oauth.AuthorizationServer): Partial<oauth.Client> {
  const algorithms = server.id_token_signing_alg_values_supported ?? []
  const [first] = algorithms
  return first === undefined || algorithms.includes('RS256') ? {} : { id_token_signed_response_alg: first }
}

function isOpenId({ scope }: SignInSettings): boolean {
  return scope.split(' ').includes('openid')
}

function redirectUri(): string {
  return `${location.origin}/console/`
}

function takeBegun(): Begun | undefined {
  const text = sessionStorage.getItem(BEGUN)
  sessionStorage.removeItem(BEGUN)
  return text === null ? undefined : (JSON.parse(text) as Begun)
}

function readSettings(): SignInSettings {
  const content = document.querySelector<HTMLMetaElement>('meta[name=penstock-sign-in]')?.content ?? ''
  return JSON.parse(content) as SignInSettings
}

function faultOf(error: unknown): string {
  if (error instanceof oauth.AuthorizationResponseError) {
    return `The issuer refuses the sign-in: ${error.error_description ?? error.error}.`
  }
  if (error instanceof oauth.ResponseBodyError) return `The issuer refuses the code: ${error.error}.`
  if (error instanceof TypeError) return 'The issuer of the sign-in cannot be reached.'
  return error instanceof Error ? error.message : String(error)
}
