import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { IdentifiedRequest } from '../../shared/http/route.ts'
import { digestOf, isWellFormedKey } from '../../shared/ids/credentials.ts'
import { PUBLIC_KEY_INVALID } from '../../shared/ids/key-problems.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import type { KeyCount } from '../../shared/queue/key-usage.ts'
import { KeyCache, type KeyCacheDeps } from './key-cache.ts'
import type { KeyCounts } from './key-counts.ts'
import type { KeyLimits, LimitsOfKeys } from './key-limits.ts'

/** The surface that a request comes from: all that the edge keeps of a public key. */
export interface SurfaceCaller {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** The surface of a public key, or the problem with the key. */
export type SurfaceAuthentication =
  | {
      readonly ok: true
      readonly surface: SurfaceCaller
      /** Owner of what the surface's requests take of shared memory and slots (`FairShares`). Kept, because joining costs. */
      readonly owner: string
      /** Undefined for a key without quotas and without allowed origins, as most are. */
      readonly limits: KeyLimits | undefined
      /** To which the requests of the key are added. */
      readonly count: KeyCount
    }
  | { readonly ok: false; readonly problem: Problem }

/** The collaborators of both checks. */
export interface KeyAuthenticatorDeps extends KeyCacheDeps {
  readonly limits: Pick<LimitsOfKeys, 'of'>
}

/** Checks public keys. */
export interface PublicKeyAuthenticator {
  /**
   * Checks the key that a request presents (docs/api/credentials.md#credentials). Returns the outcome at once when the key is
   * cached or malformed, else a promise. A failed lookup is 503, never 401.
   */
  authenticate(
    key: string | undefined,
    request?: IdentifiedRequest,
  ): SurfaceAuthentication | Promise<SurfaceAuthentication>
  readonly cache: KeyCache<SurfaceAuthentication>
}

const MISSING: SurfaceAuthentication = {
  ok: false,
  problem: {
    code: 'AUTH_MISSING',
    missing: 'publicKey',
    message:
      'a public key is required in the header x-service-public-key, the query parameter public_key, or as a Bearer token',
  },
}
const INVALID: SurfaceAuthentication = { ok: false, problem: PUBLIC_KEY_INVALID }

/** The problem of a request whose key could not be looked up. */
export const KEY_UNCHECKED: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'the key could not be checked; send the request again',
  retryAfterSeconds: 1,
}

/** The problem of a request whose key was not seen before, while too many such keys are looked up. */
export const TOO_MANY_UNSEEN_KEYS: Problem = {
  ...KEY_UNCHECKED,
  message: 'too many keys are being checked that this server has not seen; send the request again after the delay',
}

/** Creates the check of public keys. They are not secret, so the cache is keyed by their text: a cached key needs no hash. */
export function createPublicKeyAuthenticator(
  deps: KeyAuthenticatorDeps & { readonly counts: Pick<KeyCounts, 'of'> },
): PublicKeyAuthenticator {
  const unavailable: SurfaceAuthentication = { ok: false, problem: KEY_UNCHECKED }
  const overBudget: SurfaceAuthentication = { ok: false, problem: TOO_MANY_UNSEEN_KEYS }
  const cache = new KeyCache<SurfaceAuthentication>(deps, {
    digestOf,
    judge: judgeWith(deps.limits, deps.counts),
    unavailable,
    overBudget,
  })
  return {
    authenticate(key, request) {
      if (key === undefined || key === '') return MISSING
      const known = cache.known(key)
      if (known !== undefined) return known
      return isWellFormedKey('public', key) ? cache.find(key, request) : INVALID
    },
    cache,
  }
}

function judgeWith(limits: Pick<LimitsOfKeys, 'of'>, counts: Pick<KeyCounts, 'of'>) {
  return (key: SurfaceKey | undefined, at: number): SurfaceAuthentication => {
    if (key?.kind !== 'public' || keyState(key, at) !== 'active') return INVALID
    const surface = { workspaceId: key.workspaceId, surfaceId: key.surfaceId }
    return { ok: true, surface, owner: ownerOf(surface), limits: limits.of(key), count: counts.of(key) }
  }
}

/** Returns the name of a surface among all those that share the memory and the slots of a process. */
export function ownerOf({ workspaceId, surfaceId }: SurfaceCaller): string {
  return `${workspaceId}/${surfaceId}`
}
