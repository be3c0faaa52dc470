import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { digestOf, isWellFormedKey } from '../../shared/ids/credentials.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createKeyCache, type KeyCache } from './key-cache.ts'

/** Who sent a request: all that the edge keeps of a public key. */
export interface SurfaceCaller {
  readonly workspaceId: string
  readonly surfaceId: string
}

export type Authentication =
  | { readonly ok: true; readonly surface: SurfaceCaller }
  | { readonly ok: false; readonly problem: Problem }

export interface PublicKeyAuthenticator {
  /** At once when the key is cached or malformed, else after a lookup. A failed lookup is 503, never 401. */
  authenticate(key: string | undefined): Authentication | Promise<Authentication>
  readonly cache: KeyCache<Authentication>
}

const MISSING: Authentication = {
  ok: false,
  problem: {
    code: 'AUTH_MISSING',
    message: 'a public key is required in the header x-service-public-key or the query parameter public_key',
  },
}
const INVALID: Authentication = {
  ok: false,
  problem: { code: 'AUTH_PK_INVALID', message: 'the public key is malformed, unknown, revoked or expired' },
}
const UNAVAILABLE: Authentication = {
  ok: false,
  problem: { code: 'INGEST_INFRA_UNAVAILABLE', message: 'the key could not be checked', retryAfterSeconds: 1 },
}

/** Checks public keys. They are no secrets: the cache goes by their text, and a known key costs no hash. */
export function createPublicKeyAuthenticator(deps: {
  directory: Directory
  logger: Logger
  now?: () => number
}): PublicKeyAuthenticator {
  const cache = createKeyCache<Authentication>(deps, { digestOf, judge, unavailable: UNAVAILABLE })
  return {
    authenticate(key) {
      if (key === undefined || key === '') return MISSING
      const known = cache.known(key)
      if (known !== undefined) return known
      return isWellFormedKey('public', key) ? cache.find(key) : INVALID
    },
    cache,
  }
}

function judge(key: SurfaceKey | undefined, at: number): Authentication {
  if (key?.kind !== 'public' || keyState(key, at) !== 'active') return INVALID
  return { ok: true, surface: { workspaceId: key.workspaceId, surfaceId: key.surfaceId } }
}
