import { PUBLIC_KEY } from '../../schemas/http/credentials.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../schemas/records/key-form.ts'
import type { IdentifiedRequest } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import { PUBLIC_KEY_INVALID } from '../../shared/ids/key-problems.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import { wrongBearer, wrongKind } from '../../shared/ids/wrong-kind.ts'
import type { KeyCount, KeyCounts } from '../../shared/queue/key-usage.ts'
import { KeyCache, type KeyCacheDeps } from './key-cache.ts'
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
  readonly counts: Pick<KeyCounts, 'of'>
}

/** Checks public keys. */
export interface PublicKeyAuthenticator {
  /**
   * Checks the key that a request presents (docs/api/credentials.md#credentials). Returns the outcome at once when the key is
   * cached or malformed, else a promise. A failed lookup is 503, never 401. Without a key, `authorization` shows whether
   * another kind of credential was sent.
   */
  authenticate(
    key: string | undefined,
    request?: IdentifiedRequest,
    authorization?: string,
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

/** Another kind of credential in `Authorization` may be meant for a proxy, so the public key counts as absent. */
function missing(authorization: string | undefined): SurfaceAuthentication {
  const message = authorization && wrongBearer(PUBLIC_KEY, authorization)
  return message ? { ok: false, problem: { code: 'AUTH_MISSING', missing: 'publicKey', message } } : MISSING
}

function refuseForm(key: string): SurfaceAuthentication {
  const message = wrongKind(PUBLIC_KEY, key)
  return message === undefined ? REFUSALS.malformed : { ok: false, problem: { code: 'AUTH_PK_INVALID', message } }
}

/** One object per reason, because the cache keeps many of them. */
const REFUSALS = {
  malformed: { ok: false, problem: PUBLIC_KEY_INVALID.malformed },
  unknown: { ok: false, problem: PUBLIC_KEY_INVALID.unknown },
  revoked: { ok: false, problem: PUBLIC_KEY_INVALID.revoked },
  expired: { ok: false, problem: PUBLIC_KEY_INVALID.expired },
} as const

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
export function createPublicKeyAuthenticator(deps: KeyAuthenticatorDeps): PublicKeyAuthenticator {
  const unavailable: SurfaceAuthentication = { ok: false, problem: KEY_UNCHECKED }
  const overBudget: SurfaceAuthentication = { ok: false, problem: TOO_MANY_UNSEEN_KEYS }
  const cache = new KeyCache<SurfaceAuthentication>(deps, {
    digestOf,
    judge: judgeWith(deps.limits, deps.counts),
    unavailable,
    overBudget,
  })
  return {
    authenticate(key, request, authorization) {
      if (key === undefined || key === '') return missing(authorization)
      const known = cache.known(key)
      if (known !== undefined) return known
      return isWellFormedKey('public', key) ? cache.find(key, request) : refuseForm(key)
    },
    cache,
  }
}

function judgeWith(limits: Pick<LimitsOfKeys, 'of'>, counts: Pick<KeyCounts, 'of'>) {
  return (key: SurfaceKey | undefined, at: number): SurfaceAuthentication => {
    if (key?.kind !== 'public') return REFUSALS.unknown
    const state = keyState(key, at)
    if (state !== 'active') return REFUSALS[state]
    const surface = { workspaceId: key.workspaceId, surfaceId: key.surfaceId }
    return { ok: true, surface, owner: ownerOf(surface), limits: limits.of(key), count: counts.of(key) }
  }
}

/** Returns the name of a surface among all those that share the memory and the slots of a process. */
export function ownerOf({ workspaceId, surfaceId }: SurfaceCaller): string {
  return `${workspaceId}/${surfaceId}`
}
