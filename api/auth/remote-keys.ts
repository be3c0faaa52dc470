import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

export interface RemoteKeysOptions {
  readonly url: string
  readonly logger: Logger
  readonly now: () => number
  /** After this the set is fetched again, so a key that its issuer withdrew stops. */
  readonly maxAgeMs?: number
  /** For so long the keys go on when the set cannot be fetched. */
  readonly keptMs?: number
  readonly timeoutMs?: number
}

/** Tokens with unknown key ids may cost the issuer this many fetches at once, and one more every ten seconds. */
const FETCH_BURST = 5
const FETCH_EVERY_MS = 10_000
/** A set has a few keys; this is a hundred of the largest. */
const SET_LIMIT_BYTES = 256 * 1024

interface KeySet {
  readonly find: JWTVerifyGetKey
  readonly fetchedAtMs: number
}

/**
 * The keys that an issuer publishes at an address (RFC 7517). Fetched with the first token, again when they are old, and
 * when a token names a key that is not among them: a new key counts at once, without a restart. Throws what
 * `createLocalJWKSet` throws for keys that the set lacks, and a TransientError when that cannot be told: jose's own remote
 * set refuses such tokens for 30 s after a fetch, and all of them as soon as an old set cannot be fetched again.
 */
export function createRemoteKeys(options: RemoteKeysOptions): JWTVerifyGetKey {
  const { url, logger, now, maxAgeMs = 600_000, keptMs = 3_600_000, timeoutMs = 2_000 } = options
  const { origin, pathname } = new URL(url)
  const address = origin + pathname
  let kept: KeySet | undefined
  let fetching: Promise<KeySet> | undefined
  let isReachable = true
  let fetchesLeft = FETCH_BURST
  let countedAtMs = now()

  function mayFetch(): boolean {
    const regained = Math.floor((now() - countedAtMs) / FETCH_EVERY_MS)
    if (regained > 0) {
      fetchesLeft = Math.min(fetchesLeft + regained, FETCH_BURST)
      countedAtMs += regained * FETCH_EVERY_MS
    }
    if (fetchesLeft === 0) return false
    fetchesLeft--
    return true
  }

  /** One at a time, whoever asks. Undefined when none may be made now, or the issuer does not answer. */
  async function refresh(): Promise<KeySet | undefined> {
    if (fetching === undefined && !mayFetch()) return undefined
    const startedAtMs = now()
    fetching ??= fetchKeys(url, timeoutMs)
      .then(find => ({ find, fetchedAtMs: startedAtMs }))
      .finally(() => {
        fetching = undefined
      })
    try {
      kept = await fetching
      isReachable = true
      return kept
    } catch (error) {
      if (isReachable) {
        logger.warn({ address, error: describeFetch(error) }, 'the keys of a token issuer cannot be fetched')
      }
      isReachable = false
      return undefined
    }
  }

  /** Old keys go on for a while when there are no newer ones to be had. */
  async function usableKeys(): Promise<KeySet> {
    const ageMs = kept ? now() - kept.fetchedAtMs : Number.POSITIVE_INFINITY
    const keys = ageMs < maxAgeMs ? kept : ((await refresh()) ?? kept)
    if (keys === undefined || now() - keys.fetchedAtMs >= keptMs) {
      throw new TransientError('the keys of the token issuer cannot be fetched')
    }
    return keys
  }

  return async (header, token) => {
    const keys = await usableKeys()
    try {
      return await keys.find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      const newer = await refresh()
      if (newer) return newer.find(header, token)
      if (isReachable) throw error
      throw new TransientError('it cannot be told whether the issuer publishes this key', { cause: error })
    }
  }
}

/** What `fetch` throws only says that it failed. */
function describeFetch(error: unknown): string {
  return describeError(error instanceof TypeError && error.cause !== undefined ? error.cause : error)
}

/** Never follows a redirect: the address is the operator's, and where it leads is not. */
async function fetchKeys(url: string, timeoutMs: number): Promise<JWTVerifyGetKey> {
  const response = await fetch(url, {
    redirect: 'error',
    headers: { accept: 'application/jwk-set+json, application/json' },
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the answer has status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength
    if (bytes > SET_LIMIT_BYTES) throw new Error(`the set is over ${SET_LIMIT_BYTES} bytes`)
    chunks.push(chunk)
  }
  // It checks the form by itself, and takes public keys only.
  return createLocalJWKSet(JSON.parse(Buffer.concat(chunks).toString()) as JSONWebKeySet)
}
