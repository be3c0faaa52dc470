import { createHash, randomBytes } from 'node:crypto'
import { setBounded } from '../../../shared/memory/bounded-map.ts'

const LIFETIME_MS = 60_000
const MOST_GRANTS = 1_000

/** A request for authorization that was granted. */
interface Grant {
  readonly redirectUri: string
  readonly codeChallenge: string
  readonly nonce: string | undefined
}

/** Authorization codes (RFC 6749 section 4.1) with their challenges (RFC 7636), in memory. */
export class Grants {
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
