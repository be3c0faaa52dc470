import { createPublicKey, type KeyObject } from 'node:crypto'
import { importPKCS8, jwtVerify, SignJWT } from 'jose'
import { DAY_S, HOUR_S } from '../../../schemas/units.ts'
import { signLocalSession } from '../../../shared/ids/local-session-token.ts'

/** How long an access token of the console is valid. A page that is open for longer signs in again. */
export const ACCESS_TOKEN_SECONDS = 8 * HOUR_S
const SESSION_SECONDS = 30 * DAY_S
const ID_TOKEN_SECONDS = 300

/** The user and the keys of an installation. */
export interface IssuerIdentity {
  readonly workspaceId: string
  readonly workspaceSlug: string
  readonly userId: string
  readonly authPrivateKey: string
  readonly authPublicKey: string
}

interface Options {
  readonly identity: IssuerIdentity
  /** URL of the issuer. */
  readonly url: string
  readonly clientId: string
  readonly now: () => number
}

/** Signs and checks the tokens of the issuer. Each kind has an audience of its own, so that none passes as another. */
export class IssuerTokens {
  readonly #options: Options
  readonly #publicKey: KeyObject

  constructor(options: Options) {
    this.#options = options
    this.#publicKey = createPublicKey(options.identity.authPublicKey)
  }

  /** Returns a session token of the API. */
  accessToken(): Promise<string> {
    const { identity } = this.#options
    const issuedAt = this.#seconds()
    return signLocalSession({
      privateKey: identity.authPrivateKey,
      userId: identity.userId,
      org: identity.workspaceSlug,
      issuedAt,
      expiresAt: issuedAt + ACCESS_TOKEN_SECONDS,
    })
  }

  idToken(nonce: string | undefined): Promise<string> {
    return this.#sign(this.#options.clientId, ID_TOKEN_SECONDS, nonce === undefined ? {} : { nonce })
  }

  /** Returns a token with which a program stays signed in. */
  refreshToken(): Promise<string> {
    return this.#sign(this.#refreshAudience(), SESSION_SECONDS, {})
  }

  isRefreshToken(token: string): Promise<boolean> {
    return this.#isOf(token, this.#refreshAudience())
  }

  /** Returns a token with which a browser stays signed in. It is good for the issuer only. */
  sessionToken(): Promise<string> {
    return this.#sign(this.#sessionAudience(), SESSION_SECONDS, {})
  }

  isSessionToken(token: string): Promise<boolean> {
    return this.#isOf(token, this.#sessionAudience())
  }

  async #isOf(token: string, audience: string): Promise<boolean> {
    const { url, identity, now } = this.#options
    try {
      const { payload } = await jwtVerify(token, this.#publicKey, {
        algorithms: ['EdDSA'],
        issuer: url,
        audience,
        currentDate: new Date(now()),
      })
      return payload.sub === identity.userId
    } catch {
      return false
    }
  }

  async #sign(audience: string, lifetimeSeconds: number, claims: Record<string, string>): Promise<string> {
    const { identity, url } = this.#options
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'EdDSA' })
      .setSubject(identity.userId)
      .setIssuer(url)
      .setAudience(audience)
      .setIssuedAt(this.#seconds())
      .setExpirationTime(this.#seconds() + lifetimeSeconds)
      .sign(await importPKCS8(identity.authPrivateKey, 'EdDSA'))
  }

  #sessionAudience(): string {
    return `${this.#options.url}/session`
  }

  #refreshAudience(): string {
    return `${this.#options.url}/refresh`
  }

  #seconds(): number {
    return Math.floor(this.#options.now() / 1_000)
  }
}
