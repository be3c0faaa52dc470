import { createHash, randomBytes } from 'node:crypto'
import { setBounded } from '../../../shared/memory/bounded-map.ts'

const CODE_LIFETIME_MS = 60_000
/** How long a person may take to allow a program. */
const REQUEST_LIFETIME_MS = 10 * 60_000
const MOST_GRANTS = 1_000

/** A request for authorization that was granted, or that waits for it. */
export interface Grant {
  readonly redirectUri: string
  readonly codeChallenge: string
  readonly nonce: string | undefined
  readonly state: string
  /** Whether it is for a program of this machine, which may stay signed in. */
  readonly isProgram: boolean
}

/** Authorization codes (RFC 6749 section 4.1) with their challenges (RFC 7636), and requests that wait, in memory. */
export class Grants {
  readonly #codes = new Map<string, Grant & { readonly until: number }>()
  readonly #waiting = new Map<string, Grant & { readonly until: number }>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns a code, which can be used once within a minute. */
  add(grant: Grant): string {
    return this.#put(this.#codes, grant, CODE_LIFETIME_MS)
  }

  /** Keeps a request until its user allows it. Returns a name that only the page of the user has. */
  wait(grant: Grant): string {
    return this.#put(this.#waiting, grant, REQUEST_LIFETIME_MS)
  }

  /** Returns the request of this name, once. */
  allow(name: string): Grant | undefined {
    return this.#take(this.#waiting, name)
  }

  /** Uses a code up. Returns its grant if the verifier is that of the challenge, and the redirect URI is the same. */
  take(code: string, redirectUri: string, verifier: string): Grant | undefined {
    const grant = this.#take(this.#codes, code)
    if (grant === undefined || grant.redirectUri !== redirectUri) return undefined
    return createHash('sha256').update(verifier).digest('base64url') === grant.codeChallenge ? grant : undefined
  }

  #put(grants: Map<string, Grant & { readonly until: number }>, grant: Grant, lifetimeMs: number): string {
    const name = randomBytes(32).toString('base64url')
    setBounded(grants, MOST_GRANTS, name, { ...grant, until: this.#now() + lifetimeMs })
    return name
  }

  #take(grants: Map<string, Grant & { readonly until: number }>, name: string): Grant | undefined {
    const grant = grants.get(name)
    grants.delete(name)
    return grant !== undefined && grant.until >= this.#now() ? grant : undefined
  }
}
