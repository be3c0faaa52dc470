import type { Redis } from 'ioredis'
import type { SurfaceKey } from '../schemas/control.ts'
import type { Problem } from '../schemas/problems.ts'
import { type ControlStore, CREDENTIAL_CHANGES_CHANNEL } from '../shared/control-store.ts'
import { digestOf, isWellFormedKey } from '../shared/credentials.ts'
import { describeError } from '../shared/errors.ts'
import type { Logger } from '../shared/logger.ts'

/** Who sent a request: all that the edge keeps of a public key. */
export interface Surface {
  readonly workspaceId: string
  readonly surfaceId: string
}

export type Authentication =
  | { readonly ok: true; readonly surface: Surface }
  | { readonly ok: false; readonly problem: Problem }

export interface PublicKeyAuthenticator {
  /** At once when the key is cached or malformed, else after a lookup. A failed lookup is 503, never 401. */
  authenticate(key: string | undefined): Authentication | Promise<Authentication>
}

const MAX_AGE_MS = 10_000
const MAX_KNOWN_KEYS = 200_000
const MAX_UNKNOWN_KEYS = 20_000

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

interface CachedKey {
  readonly authentication: Authentication
  readonly digest: string
  /** The entry's age and the key's own expiry, whichever ends first. */
  readonly validUntil: number
}

/**
 * Checks public keys against a cache in front of the control store. An entry lives 10 s at most, and goes at once when
 * its key changes: changes are pushed, and a broken push channel empties the cache. Unknown keys have a cache of their
 * own, so that guessing cannot drive out real ones. Public keys are no secrets: the cache goes by their text.
 */
export function createPublicKeyAuthenticator(deps: {
  control: ControlStore
  /** A connection of its own for the subscription. */
  subscriber: Redis
  logger: Logger
  now?: () => number
}): PublicKeyAuthenticator {
  const { control, subscriber, logger, now = Date.now } = deps
  const known = new Map<string, CachedKey>()
  const unknown = new Map<string, CachedKey>()
  const lookups = new Map<string, Promise<Authentication>>()
  let generation = 0

  subscriber.on('ready', () => {
    flush()
    subscriber.subscribe(CREDENTIAL_CHANGES_CHANNEL).catch(error => {
      logger.warn({ error: describeError(error) }, 'changes of credentials cannot be followed')
    })
  })
  subscriber.on('close', flush)
  subscriber.on('message', (_channel, digest: string) => {
    generation++
    for (const cache of [known, unknown]) {
      for (const [key, entry] of cache) if (entry.digest === digest) cache.delete(key)
    }
  })

  function flush(): void {
    generation++
    known.clear()
    unknown.clear()
  }

  async function lookUp(key: string): Promise<Authentication> {
    const startedIn = generation
    const digest = digestOf(key)
    let record: SurfaceKey | undefined
    try {
      record = await control.surfaceKeyByDigest(digest)
    } catch (error) {
      logger.warn({ error: describeError(error) }, 'a key could not be looked up')
      return UNAVAILABLE
    }
    const at = now()
    const surface = record && usableSurface(record, at)
    const authentication: Authentication = surface ? { ok: true, surface } : INVALID
    // What was read before a change may be older than the change.
    if (startedIn === generation) {
      const expiresAt = surface && record?.expiresAt ? Date.parse(record.expiresAt) : Number.POSITIVE_INFINITY
      const entry = { authentication, digest, validUntil: Math.min(at + MAX_AGE_MS, expiresAt) }
      if (surface) remember(known, MAX_KNOWN_KEYS, key, entry)
      else remember(unknown, MAX_UNKNOWN_KEYS, key, entry)
    }
    return authentication
  }

  return {
    authenticate(key) {
      if (key === undefined || key === '') return MISSING
      const cached = known.get(key)
      if (cached !== undefined && cached.validUntil > now()) return cached.authentication
      if (!isWellFormedKey('public', key)) return INVALID
      const refused = unknown.get(key)
      if (refused !== undefined && refused.validUntil > now()) return refused.authentication
      let lookup = lookups.get(key)
      if (lookup === undefined) {
        lookup = lookUp(key).finally(() => lookups.delete(key))
        lookups.set(key, lookup)
      }
      return lookup
    },
  }
}

function usableSurface(key: SurfaceKey, at: number): Surface | undefined {
  if (key.kind !== 'public' || key.revokedAt !== null) return undefined
  if (key.expiresAt !== null && Date.parse(key.expiresAt) <= at) return undefined
  return { workspaceId: key.workspaceId, surfaceId: key.surfaceId }
}

/** Bounded: the entry written longest ago makes room. */
function remember(cache: Map<string, CachedKey>, limit: number, key: string, entry: CachedKey): void {
  cache.delete(key)
  if (cache.size >= limit) {
    const [oldest] = cache.keys()
    if (oldest !== undefined) cache.delete(oldest)
  }
  cache.set(key, entry)
}
