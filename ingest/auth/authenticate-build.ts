import { SECRET_KEY } from '../../schemas/http/credentials.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { isWellFormedKey } from '../../schemas/records/key-form.ts'
import type { IdentifiedRequest } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import { SECRET_KEY_INVALID } from '../../shared/ids/key-problems.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import { wrongBearer } from '../../shared/ids/wrong-kind.ts'
import type { KeyCount } from '../../shared/queue/key-usage.ts'
import {
  KEY_UNCHECKED,
  type KeyAuthenticatorDeps,
  ownerOf,
  type SurfaceCaller,
  TOO_MANY_UNSEEN_KEYS,
} from './authenticate-surface.ts'
import { KeyCache } from './key-cache.ts'
import type { KeyLimits } from './key-limits.ts'

/** Build tooling that presented a secret key of a surface. */
export interface BuildCaller {
  readonly surface: SurfaceCaller
  /** Owner of what the requests take of shared memory and slots (`FairShares`). */
  readonly owner: string
  readonly scopes: readonly string[]
  /** Undefined for a key without quotas, as most are. */
  readonly limits: KeyLimits | undefined
  /** To which the requests of the key are added. */
  readonly count: KeyCount
}

/** The build tooling of a secret key, or the problem with the key. */
export type BuildAuthentication =
  | { readonly ok: true; readonly build: BuildCaller }
  | { readonly ok: false; readonly problem: Problem }

/** Checks secret keys. */
export interface SecretKeyAuthenticator {
  /**
   * Checks the key in the header `authorization` (docs/api/credentials.md#credentials). Returns the outcome at once when the key
   * is cached or malformed, else a promise.
   */
  authenticate(
    authorization: string | undefined,
    request?: IdentifiedRequest,
  ): BuildAuthentication | Promise<BuildAuthentication>
  readonly cache: KeyCache<BuildAuthentication>
}

const MISSING: BuildAuthentication = {
  ok: false,
  problem: {
    code: 'AUTH_MISSING',
    missing: 'bearer',
    message: 'a secret key is required in the header authorization, as Bearer and the key',
  },
}

/** Creates the check of secret keys. The cache is keyed by their digests, so that no key's text outlives its request. */
export function createSecretKeyAuthenticator(deps: KeyAuthenticatorDeps): SecretKeyAuthenticator {
  const cache = new KeyCache<BuildAuthentication>(deps, {
    digestOf: digest => digest,
    judge: judgeWith(deps),
    unavailable: { ok: false, problem: KEY_UNCHECKED },
    overBudget: { ok: false, problem: TOO_MANY_UNSEEN_KEYS },
  })
  return {
    authenticate(authorization, request) {
      if (authorization === undefined) return MISSING
      const key = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
      if (key === undefined || !isWellFormedKey('secret', key)) return refuseForm(authorization)
      const digest = digestOf(key)
      return cache.known(digest) ?? cache.find(digest, request)
    },
    cache,
  }
}

function judgeWith({ limits, counts }: Pick<KeyAuthenticatorDeps, 'limits' | 'counts'>) {
  return (key: SurfaceKey | undefined, at: number): BuildAuthentication => {
    if (key?.kind !== 'secret') return REFUSALS.unknown
    const state = keyState(key, at)
    if (state !== 'active') return REFUSALS[state]
    const { workspaceId, surfaceId, scopes } = key
    const surface = { workspaceId, surfaceId }
    const build = { surface, owner: ownerOf(surface), scopes, limits: limits.of(key), count: counts.of(key) }
    return { ok: true, build }
  }
}

function refuseForm(authorization: string): BuildAuthentication {
  const message = wrongBearer(SECRET_KEY, authorization)
  return message === undefined ? REFUSALS.malformed : { ok: false, problem: { code: 'AUTH_MISSING', message } }
}

/** One object per reason, because the cache keeps many of them. */
const REFUSALS = {
  malformed: { ok: false, problem: SECRET_KEY_INVALID.malformed },
  unknown: { ok: false, problem: SECRET_KEY_INVALID.unknown },
  revoked: { ok: false, problem: SECRET_KEY_INVALID.revoked },
  expired: { ok: false, problem: SECRET_KEY_INVALID.expired },
} as const
