import type { Problem } from '../../schemas/http/problems.ts'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { digestOf, isWellFormedKey } from '../../shared/ids/credentials.ts'
import { keyState } from '../../shared/ids/key-state.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { SurfaceCaller } from './authenticate-surface.ts'
import { createKeyCache, type KeyCache } from './key-cache.ts'

/** Build tooling with a secret key of a surface. */
export interface Build {
  readonly surface: SurfaceCaller
  readonly scopes: readonly string[]
}

export type BuildAuthentication =
  | { readonly ok: true; readonly build: Build }
  | { readonly ok: false; readonly problem: Problem }

export interface SecretKeyAuthenticator {
  /** Of the header `authorization`: at once when the key is cached or malformed, else after a lookup. */
  authenticate(authorization: string | undefined): BuildAuthentication | Promise<BuildAuthentication>
  readonly cache: KeyCache<BuildAuthentication>
}

const MISSING = refusal('a secret key is required in the header authorization, as Bearer and the key')
const MALFORMED = refusal('the secret key is malformed')
const UNKNOWN = refusal('the secret key is unknown')
const UNUSABLE = {
  revoked: refusal('the secret key is revoked'),
  expired: refusal('the secret key is expired'),
} as const
const UNAVAILABLE: BuildAuthentication = {
  ok: false,
  problem: { code: 'INGEST_INFRA_UNAVAILABLE', message: 'the key could not be checked', retryAfterSeconds: 1 },
}

/** Checks secret keys. The cache goes by their digests: their text is nowhere once a request is decided. */
export function createSecretKeyAuthenticator(deps: {
  directory: Directory
  logger: Logger
  now?: () => number
}): SecretKeyAuthenticator {
  const options = { digestOf: (digest: string) => digest, judge, unavailable: UNAVAILABLE }
  const cache = createKeyCache<BuildAuthentication>(deps, options)
  return {
    authenticate(authorization) {
      if (authorization === undefined) return MISSING
      const key = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
      if (key === undefined || !isWellFormedKey('secret', key)) return MALFORMED
      const digest = digestOf(key)
      return cache.known(digest) ?? cache.find(digest)
    },
    cache,
  }
}

function judge(key: SurfaceKey | undefined, at: number): BuildAuthentication {
  if (key?.kind !== 'secret') return UNKNOWN
  const state = keyState(key, at)
  if (state !== 'active') return UNUSABLE[state]
  const { workspaceId, surfaceId, scopes } = key
  return { ok: true, build: { surface: { workspaceId, surfaceId }, scopes } }
}

function refusal(message: string): BuildAuthentication {
  return { ok: false, problem: { code: 'AUTH_MISSING', message } }
}
