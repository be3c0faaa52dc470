import { createHash, createPublicKey, randomBytes } from 'node:crypto'
import { exportJWK } from 'jose'
import {
  type Header,
  jsonReply,
  NO_SNIFF,
  NO_STORE,
  type Reply,
  type RequestHead,
  type Route,
} from '../../../shared/http/route.ts'
import { setBounded } from '../../../shared/memory/bounded-map.ts'
import { commandFor } from '../config.ts'
import { openLink } from './links.ts'
import { ACCESS_TOKEN_SECONDS, type IssuerIdentity, IssuerTokens } from './tokens.ts'

/** Path of the issuer below the address of the service. */
export const ISSUER_PATH = '/local-issuer'
/** Id of the console at the issuer. */
const CLIENT_ID = 'penstock-console'
const FORM_LIMIT_BYTES = 8 * 1024
const TEXT_MAX = 512
const USED_LINK =
  'This link was used before, or is older than a day, and this browser is not signed in. To get a new link, run:'

/** An issuer for one user, who has the machine. */
interface LocalIssuer {
  readonly identity: IssuerIdentity
  /** Directory of the installation, with the links. */
  readonly directory: string
  /** Address of the service, below which the issuer is. */
  readonly baseUrl: string
  /** Addresses at which the console is served. */
  readonly consoleOrigins: readonly string[]
  readonly now: () => number
}

/**
 * Returns the routes of the OpenID provider of `npm start`: code flow with PKCE for the console alone. A link that `npm start`
 * prints opens a session, which a cookie of the issuer keeps. No other route reads cookies.
 */
export async function createIssuerRoutes(issuer: LocalIssuer): Promise<readonly Route[]> {
  const { identity, directory, baseUrl, now } = issuer
  const url = baseUrl + ISSUER_PATH
  const redirectUris = issuer.consoleOrigins.map(origin => `${origin}/console/`)
  const tokens = new IssuerTokens({ identity, url, clientId: CLIENT_ID, path: ISSUER_PATH, now })
  const grants = new Grants(now)
  const jwk = { ...(await exportJWK(createPublicKey(identity.authPublicKey))), use: 'sig', alg: 'EdDSA' }

  async function authorize(request: AuthorizationRequest, cookie: string | undefined): Promise<Reply> {
    const { clientId, redirectUri, responseType, challenge, challengeMethod, state, prompt, nonce } = request
    if (clientId !== CLIENT_ID || !redirectUris.includes(redirectUri)) {
      return otherAddressReply(redirectUris, clientId, redirectUri)
    }
    const back = (parameters: Record<string, string>) =>
      redirect(withParameters(redirectUri, { ...parameters, iss: url, state }))
    const isValid = responseType === 'code' && challengeMethod === 'S256' && /^[\w-]{43}$/.test(challenge)
    if (!isValid || state.length > TEXT_MAX) return back({ error: 'invalid_request' })
    if (await tokens.isSession(cookie))
      return back({ code: grants.add({ redirectUri, codeChallenge: challenge, nonce }) })
    if (prompt === 'none') return back({ error: 'login_required' })
    return issuePage(401, 'You are not signed in. Open the link that the start printed, or print another one:')
  }

  async function exchange(form: URLSearchParams): Promise<Reply> {
    const read = (name: string) => form.get(name) ?? ''
    if (read('grant_type') !== 'authorization_code') return tokenFault('unsupported_grant_type')
    if (read('client_id') !== CLIENT_ID) return tokenFault('invalid_client')
    const grant = grants.take(read('code'), read('redirect_uri'), read('code_verifier'))
    if (grant === undefined) return tokenFault('invalid_grant')
    return tokenReply(tokens, grant.nonce)
  }

  async function open(code: string, cookie: string | undefined): Promise<Reply> {
    const isOpened = await openLink(directory, code, now)
    if (isOpened) return redirect(`${baseUrl}/console/`, [['set-cookie', await tokens.sessionCookie()]])
    return (await tokens.isSession(cookie)) ? redirect(`${baseUrl}/console/`) : issuePage(410, USED_LINK)
  }

  return [
    get('/.well-known/openid-configuration', () => jsonReply(discoveryOf(url))),
    get('/jwks.json', () => jsonReply({ keys: [jwk] })),
    get('/authorize', head => authorize(authorizationRequest(head), head.header('cookie'))),
    get('/open', head => open(head.query('code') ?? '', head.header('cookie'))),
    get('/end', () =>
      issuePage(200, 'You are signed out. To sign in again, print another link:', [['set-cookie', tokens.endedCookie]]),
    ),
    {
      method: 'POST',
      path: `${ISSUER_PATH}/token`,
      cors: true,
      bodyLimitBytes: FORM_LIMIT_BYTES,
      accept: () => body => exchange(new URLSearchParams(body.toString('utf8'))),
    },
  ]
}

/** Returns a route that pages of the other address of the service may read. */
function get(path: string, accept: (head: RequestHead) => Reply | Promise<Reply>): Route {
  return { method: 'GET', path: ISSUER_PATH + path, cors: true, bodyLimitBytes: 0, accept }
}

interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly responseType: string
  readonly challenge: string
  readonly challengeMethod: string
  readonly state: string
  readonly prompt: string
  readonly nonce: string | undefined
}

function authorizationRequest(head: RequestHead): AuthorizationRequest {
  const read = (name: string) => head.query(name) ?? ''
  return {
    clientId: read('client_id'),
    redirectUri: read('redirect_uri'),
    responseType: read('response_type'),
    challenge: read('code_challenge'),
    challengeMethod: read('code_challenge_method'),
    state: read('state'),
    prompt: read('prompt'),
    nonce: head.query('nonce')?.slice(0, TEXT_MAX),
  }
}

function discoveryOf(url: string): object {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    end_session_endpoint: `${url}/end`,
    jwks_uri: `${url}/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code'],
    subject_types_supported: ['public'],
    scopes_supported: ['openid'],
    id_token_signing_alg_values_supported: ['EdDSA'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

const JSON_NO_STORE = [['content-type', 'application/json'], NO_SNIFF, NO_STORE] as const

async function tokenReply(tokens: IssuerTokens, nonce: string | undefined): Promise<Reply> {
  return jsonReply(
    {
      access_token: await tokens.accessToken(),
      id_token: await tokens.idToken(nonce),
      token_type: 'Bearer',
      expires_in: ACCESS_TOKEN_SECONDS,
    },
    200,
    JSON_NO_STORE,
  )
}

function tokenFault(error: string): Reply {
  return jsonReply({ error }, 400, JSON_NO_STORE)
}

/** Returns a redirect that names no page as its referrer, because its own address has a code. */
function redirect(location: string, headers: Reply['headers'] = []): Reply {
  return { status: 302, headers: [['location', location], NO_STORE, ['referrer-policy', 'no-referrer'], ...headers] }
}

/**
 * Returns the reply to a sign-in of another address. A browser at `localhost` continues where the console is, without a code:
 * another user of the machine may listen at ::1, to which that name leads too.
 */
function otherAddressReply(redirectUris: readonly string[], clientId: string, redirectUri: string): Reply {
  const meant = redirectUris.find(uri => uri.replace('//127.0.0.1:', '//localhost:') === redirectUri)
  if (clientId === CLIENT_ID && meant !== undefined) return redirect(meant)
  return issuePage(400, `The console of this installation is at ${redirectUris[0]}. To sign in there, print a link:`)
}

/** Percent-encodes every value, so that no header of the redirect can have a line break of a client. */
function withParameters(uri: string, parameters: Readonly<Record<string, string>>): string {
  return `${uri}?${new URLSearchParams(parameters)}`
}

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

/** Returns a page of the issuer: a text of this program, and the command that prints another link. */
function issuePage(status: number, text: string, headers: readonly Header[] = []): Reply {
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in to Penstock</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.25rem }
code { font: 14px/1.5 ui-monospace, monospace; background: color-mix(in srgb, currentColor 10%, transparent); padding: .25em .5em; border-radius: 4px }
</style>
<main>
<h1>Penstock</h1>
<p>${text.replaceAll('"', '&quot;')}</p>
<p><code>${commandFor('console:link')}</code></p>
</main>
</html>
`
  const own: Header[] = [
    ['content-type', 'text/html; charset=utf-8'],
    ['content-security-policy', POLICY],
    ['referrer-policy', 'no-referrer'],
    NO_SNIFF,
    NO_STORE,
  ]
  return { status, headers: [...own, ...headers], body }
}

const LIFETIME_MS = 60_000
const MOST_GRANTS = 1_000

/** A request for authorization that was granted. */
interface Grant {
  readonly redirectUri: string
  readonly codeChallenge: string
  readonly nonce: string | undefined
}

/** Authorization codes (RFC 6749 section 4.1) with their challenges (RFC 7636), in memory. */
class Grants {
  readonly #grants = new Map<string, Grant & { readonly until: number }>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns a code, which can be used once within a minute. */
  add(grant: Grant): string {
    const code = randomBytes(32).toString('base64url')
    setBounded(this.#grants, MOST_GRANTS, code, { ...grant, until: this.#now() + LIFETIME_MS })
    return code
  }

  /** Uses a code up. Returns its grant if the verifier is that of the challenge, and the redirect URI is the same. */
  take(code: string, redirectUri: string, verifier: string): Grant | undefined {
    const grant = this.#grants.get(code)
    this.#grants.delete(code)
    if (grant === undefined || grant.until < this.#now() || grant.redirectUri !== redirectUri) return undefined
    return createHash('sha256').update(verifier).digest('base64url') === grant.codeChallenge ? grant : undefined
  }
}
