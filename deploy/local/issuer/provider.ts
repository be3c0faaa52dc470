import { jsonReply, NO_SNIFF, NO_STORE, type Reply } from '../../../shared/http/route.ts'
import { type Grant, Grants } from './grants.ts'
import { openLink } from './links.ts'
import { ISSUER_PATH, otherAddressReply, stepPage, withParameters } from './pages.ts'
import { ACCESS_TOKEN_SECONDS, type IssuerIdentity, IssuerTokens } from './tokens.ts'

/** Id of the console and of programs at the issuer. */
export const CLIENT_ID = 'penstock-console'
/** Address at which a program of this machine waits for its code (RFC 8252 section 7.3). */
export const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost):\d{1,5}\/[\w./-]{0,200}$/
/** Headers of every response with JSON that belongs to one client. */
export const JSON_NO_STORE = [['content-type', 'application/json'], NO_SNIFF, NO_STORE] as const
/** Most characters of a text that a request brings. */
export const TEXT_MAX = 512
const USED_LINK =
  'This link was used before, or is older than a day, and this browser is not signed in. To get a new link, run:'

/** An issuer for one user, who has the machine. */
export interface LocalIssuer {
  readonly identity: IssuerIdentity
  /** Directory of the installation, with the links. */
  readonly directory: string
  /** Address of the service, below which the issuer is. */
  readonly baseUrl: string
  /** Addresses at which the console is served. */
  readonly consoleOrigins: readonly string[]
  readonly now: () => number
}

/** What a request for authorization asks for. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly responseType: string
  readonly challenge: string
  readonly challengeMethod: string
  readonly state: string
  readonly prompt: string
  readonly nonce: string | undefined
  readonly resource: string
}

/** Answers the requests of browsers and programs. */
export class Provider {
  readonly #issuer: LocalIssuer
  readonly #url: string
  readonly #redirectUris: readonly string[]
  readonly #tokens: IssuerTokens
  readonly #grants: Grants

  constructor(issuer: LocalIssuer) {
    const { identity, baseUrl, consoleOrigins, now } = issuer
    this.#issuer = issuer
    this.#url = baseUrl + ISSUER_PATH
    this.#redirectUris = consoleOrigins.map(origin => `${origin}/console/`)
    this.#tokens = new IssuerTokens({ identity, url: this.#url, clientId: CLIENT_ID, now })
    this.#grants = new Grants(now)
  }

  /** Returns the page that takes the step of its address, or leads a sign-in of another address to where the console is. */
  authorizePage({ clientId, redirectUri }: AuthorizationRequest): Reply {
    if (this.#isKnown(clientId, redirectUri)) return stepPage('authorize')
    return otherAddressReply(this.#redirectUris, clientId === CLIENT_ID ? redirectUri : '')
  }

  async authorize(request: AuthorizationRequest, session: string): Promise<Reply> {
    const { clientId, redirectUri, responseType, challenge, challengeMethod, state, prompt, nonce } = request
    if (!this.#isKnown(clientId, redirectUri)) return refused(400, 'This sign-in is of another address.')
    const isProgram = this.#isOfProgram(redirectUri)
    const back = (parameters: Record<string, string>) =>
      answer({ location: withParameters(redirectUri, { ...parameters, iss: this.#url, state }) })
    const isValid = responseType === 'code' && challengeMethod === 'S256' && /^[\w-]{43}$/.test(challenge)
    if (!isValid || state.length > TEXT_MAX) return back({ error: 'invalid_request' })
    if (!this.#isOwn(request.resource)) return back({ error: 'invalid_target' })
    if (await this.#tokens.isSessionToken(session)) {
      const grant: Grant = { redirectUri, codeChallenge: challenge, nonce, state, isProgram }
      // Any page can lead here, and another user of the machine can wait at an address of it.
      if (isProgram) return answer({ text: questionOf(new URL(redirectUri).host), request: this.#grants.wait(grant) })
      return back({ code: this.#grants.add(grant) })
    }
    if (prompt === 'none') return back({ error: 'login_required' })
    return refused(401, 'You are not signed in. Open the link that the start printed, or print another one:')
  }

  /** Answers the user who allows a program to sign in. */
  async allow(name: string, session: string): Promise<Reply> {
    const grant = (await this.#tokens.isSessionToken(session)) ? this.#grants.allow(name) : undefined
    if (grant === undefined) return refused(410, 'This request was answered before, or is too old. Sign in again.')
    const parameters = { code: this.#grants.add(grant), iss: this.#url, state: grant.state }
    return answer({ location: withParameters(grant.redirectUri, parameters) })
  }

  async exchange(form: URLSearchParams): Promise<Reply> {
    const read = (name: string) => form.get(name) ?? ''
    const isRefresh = read('grant_type') === 'refresh_token'
    if (!isRefresh && read('grant_type') !== 'authorization_code') return tokenFault('unsupported_grant_type')
    if (read('client_id') !== CLIENT_ID) return tokenFault('invalid_client')
    if (!this.#isOwn(read('resource'))) return tokenFault('invalid_target')
    if (isRefresh) {
      const isValid = await this.#tokens.isRefreshToken(read('refresh_token'))
      return isValid ? this.#tokenReply({ isProgram: true, nonce: undefined }) : tokenFault('invalid_grant')
    }
    const grant = this.#grants.take(read('code'), read('redirect_uri'), read('code_verifier'))
    return grant === undefined ? tokenFault('invalid_grant') : this.#tokenReply(grant)
  }

  async open(code: string, session: string): Promise<Reply> {
    const { directory, baseUrl, now } = this.#issuer
    const location = `${baseUrl}/console/`
    if (await openLink(directory, code, now)) return answer({ location, session: await this.#tokens.sessionToken() })
    return (await this.#tokens.isSessionToken(session)) ? answer({ location }) : refused(410, USED_LINK)
  }

  #isKnown(clientId: string, redirectUri: string): boolean {
    return clientId === CLIENT_ID && (this.#isOfProgram(redirectUri) || this.#redirectUris.includes(redirectUri))
  }

  /** Reports whether a program waits at an address of this machine. Those of the service itself are the console's. */
  #isOfProgram(redirectUri: string): boolean {
    if (!LOOPBACK.test(redirectUri)) return false
    const { port } = new URL(redirectUri)
    return !this.#issuer.consoleOrigins.some(origin => new URL(origin).port === port)
  }

  /** The resource that a client names (RFC 8707) must be this service, or what agents connect to. */
  #isOwn(resource: string): boolean {
    const own = this.#issuer.consoleOrigins.flatMap(origin => [origin, `${origin}/`, `${origin}/mcp`])
    return resource === '' || own.includes(resource)
  }

  async #tokenReply({ nonce, isProgram }: Pick<Grant, 'nonce' | 'isProgram'>): Promise<Reply> {
    return jsonReply(
      {
        access_token: await this.#tokens.accessToken(),
        id_token: await this.#tokens.idToken(nonce),
        token_type: 'Bearer',
        ...(isProgram && { refresh_token: await this.#tokens.refreshToken() }),
        expires_in: ACCESS_TOKEN_SECONDS,
      },
      200,
      JSON_NO_STORE,
    )
  }
}

/** What a page does next: go to an address, or show a text. */
interface PageAnswer {
  readonly location?: string
  /** Kept in the storage of the origin. */
  readonly session?: string
  readonly text?: string
  /** Name of a request that the user may allow. */
  readonly request?: string
  /** Whether another link helps. */
  readonly isRefused?: boolean
}

function answer(next: PageAnswer, status = 200): Reply {
  return jsonReply(next, status, JSON_NO_STORE)
}

function refused(status: number, text: string): Reply {
  return answer({ text, isRefused: true }, status)
}

function questionOf(host: string): string {
  return `A program of this machine (${host}) asks to sign in as you. Allow it only if you have just started it.`
}

function tokenFault(error: string): Reply {
  return jsonReply({ error }, 400, JSON_NO_STORE)
}
