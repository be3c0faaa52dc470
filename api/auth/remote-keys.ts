import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { HOUR_MS, KIB } from '../../schemas/units.ts'
import { TokenBucket } from '../../shared/concurrency/token-bucket.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Settings of `createRemoteKeys`. */
interface RemoteKeysOptions {
  readonly url: string
  readonly logger: Logger
  readonly now: () => number
  /** Age after which the set is fetched again, so that a key that its issuer withdrew is no longer accepted. */
  readonly maxAgeMs?: number
  /** How long stale keys remain usable while the JWKS endpoint is unavailable. */
  readonly keptMs?: number
  readonly timeoutMs?: number
}

/** Tokens with unknown key ids may cause five fetches in a burst, and one more every ten seconds. */
const FETCHES = { capacity: 5, refillMs: 50_000 }
/** A set contains a few keys; this is room for a hundred of the largest. */
const SET_LIMIT_BYTES = 256 * KIB

interface KeySet {
  readonly find: JWTVerifyGetKey
  readonly fetchedAtMs: number
}

/**
 * Creates a lookup in the JWKS that an issuer publishes (RFC 7517). The set is fetched with the first token, when it is old,
 * and when a token names a key that is not in the set. So a new key is accepted at once, without a restart.
 *
 * The lookup throws what `createLocalJWKSet` throws for keys that a set fetched after the token came does not contain, and
 * a TransientError when the set cannot be fetched. The remote set of jose is not used, because it refuses tokens with new keys
 * for 30 s after a fetch, and all tokens as soon as an old set cannot be fetched again.
 */
export function createRemoteKeys(options: RemoteKeysOptions): JWTVerifyGetKey {
  const keys = new RemoteKeys(options)
  return (...token) => keys.find(...token)
}

class RemoteKeys {
  readonly #options: RemoteKeysOptions
  readonly #maxAgeMs: number
  readonly #keptMs: number
  #keys: KeySet | undefined
  #fetching: Promise<KeySet> | undefined
  #isReachable = true
  readonly #fetches: TokenBucket

  constructor(options: RemoteKeysOptions) {
    this.#options = options
    this.#maxAgeMs = options.maxAgeMs ?? 600_000
    this.#keptMs = options.keptMs ?? HOUR_MS
    this.#fetches = new TokenBucket(FETCHES, options.now)
  }

  async find(...token: Parameters<JWTVerifyGetKey>): Promise<Awaited<ReturnType<JWTVerifyGetKey>>> {
    const keys = await this.#usableKeys()
    try {
      return await keys.find(...token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      const newer = await this.#refresh()
      if (newer) return newer.find(...token)
      // Either the fetch failed, or other tokens with unknown keys have used up the fetches: the key may be a new one.
      throw new TransientError('the JWKS that may contain the key of the token cannot be fetched', { cause: error })
    }
  }

  /** Returns keys that are not too old. Stale keys remain usable for a while if newer ones cannot be fetched. */
  async #usableKeys(): Promise<KeySet> {
    const { now } = this.#options
    const ageMs = this.#keys ? now() - this.#keys.fetchedAtMs : Number.POSITIVE_INFINITY
    const keys = ageMs < this.#maxAgeMs ? this.#keys : ((await this.#refresh()) ?? this.#keys)
    if (keys === undefined || now() - keys.fetchedAtMs >= this.#keptMs) {
      throw new TransientError('the keys of the token issuer cannot be fetched')
    }
    return keys
  }

  /** Fetches the set; concurrent calls share one fetch. Returns undefined if the limit is reached or the fetch fails. */
  async #refresh(): Promise<KeySet | undefined> {
    if (this.#fetching === undefined && !this.#mayFetch()) return undefined
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    try {
      this.#keys = await this.#fetching
      this.#isReachable = true
      return this.#keys
    } catch (error) {
      if (this.#isReachable) this.#warn(error)
      this.#isReachable = false
      return undefined
    }
  }

  async #fetch(): Promise<KeySet> {
    const { url, timeoutMs = 2_000, now } = this.#options
    const fetchedAtMs = now()
    return { find: await fetchKeys(url, timeoutMs), fetchedAtMs }
  }

  /** Takes one fetch from the token bucket, if one is left. */
  #mayFetch(): boolean {
    if (this.#fetches.left < 1) return false
    this.#fetches.take(1)
    return true
  }

  #warn(error: unknown): void {
    const { origin, pathname } = new URL(this.#options.url)
    const address = origin + pathname
    this.#options.logger.warn({ address, error: describeFetch(error) }, 'the keys of a token issuer cannot be fetched')
  }
}

/** Describes why `fetch` failed. The message of its TypeError is only "fetch failed"; the cause names the reason. */
function describeFetch(error: unknown): string {
  return describeError(error instanceof TypeError && error.cause !== undefined ? error.cause : error)
}

/** Never follows a redirect, because only the configured address is trusted. */
async function fetchKeys(url: string, timeoutMs: number): Promise<JWTVerifyGetKey> {
  const response = await fetch(url, {
    redirect: 'error',
    headers: { accept: 'application/jwk-set+json, application/json' },
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the JWKS endpoint returned status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > SET_LIMIT_BYTES) throw new Error(`the JWKS is over ${SET_LIMIT_BYTES} bytes`)
    chunks.push(chunk)
  }
  // createLocalJWKSet checks the form of the set, and accepts public keys only.
  return createLocalJWKSet(JSON.parse(Buffer.concat(chunks).toString()) as JSONWebKeySet)
}
