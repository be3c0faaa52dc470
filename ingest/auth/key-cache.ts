import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { setBounded } from './bounded-map.ts'

/** What became of the check of a key: only one that is `ok` counts as known. */
export interface Judgement {
  readonly ok: boolean
}

export interface KeyCache<J extends Judgement> {
  /** What a usable key was found to be, as long as that may be relied on. */
  known(name: string): J | undefined
  /** At once for a key that is remembered as unusable, else after a lookup, which all who ask meanwhile share. */
  find(name: string): J | Promise<J>
  /** The key of this digest has changed. */
  forget(digest: string): void
  forgetAll(): void
}

export interface KeyCacheOptions<J extends Judgement> {
  /** A cache goes by names: the text of a key that is no secret, else its digest. */
  readonly digestOf: (name: string) => string
  readonly judge: (key: SurfaceKey | undefined, at: number) => J
  /** The answer while the directory cannot be asked; it is not remembered. */
  readonly unavailable: J
}

const MAX_AGE_MS = 10_000
const MAX_KNOWN_KEYS = 200_000
const MAX_UNKNOWN_KEYS = 20_000

interface CachedKey<J> {
  readonly judgement: J
  readonly digest: string
  /** The entry's age and the key's own expiry, whichever ends first. */
  readonly validUntil: number
}

/**
 * Surface keys in front of the directory. An entry lives 10 s at most, and goes at once when its key changes, as far
 * as the cache is told (`credential-changes.ts`). Unknown keys have a cache of their own, so that guessing cannot drive
 * out real ones.
 */
export function createKeyCache<J extends Judgement>(
  deps: { directory: Directory; logger: Logger; now?: () => number },
  { digestOf, judge, unavailable }: KeyCacheOptions<J>,
): KeyCache<J> {
  const { directory, logger, now = Date.now } = deps
  const known = new Map<string, CachedKey<J>>()
  const unknown = new Map<string, CachedKey<J>>()
  const lookups = new Map<string, Promise<J>>()
  let generation = 0

  async function lookUp(name: string): Promise<J> {
    const startedIn = generation
    const digest = digestOf(name)
    let record: SurfaceKey | undefined
    try {
      record = await directory.surfaceKeyByDigest(digest)
    } catch (error) {
      logger.warn({ error: describeError(error) }, 'a key could not be looked up')
      return unavailable
    }
    const at = now()
    const judgement = judge(record, at)
    // What was read before a change may be older than the change.
    if (startedIn === generation) {
      const expiresAt = judgement.ok && record?.expiresAt ? Date.parse(record.expiresAt) : Number.POSITIVE_INFINITY
      const entry = { judgement, digest, validUntil: Math.min(at + MAX_AGE_MS, expiresAt) }
      if (judgement.ok) setBounded(known, MAX_KNOWN_KEYS, name, entry)
      else setBounded(unknown, MAX_UNKNOWN_KEYS, name, entry)
    }
    return judgement
  }

  return {
    known(name) {
      const cached = known.get(name)
      return cached !== undefined && cached.validUntil > now() ? cached.judgement : undefined
    },
    find(name) {
      const refused = unknown.get(name)
      if (refused !== undefined && refused.validUntil > now()) return refused.judgement
      let lookup = lookups.get(name)
      if (lookup === undefined) {
        lookup = lookUp(name).finally(() => lookups.delete(name))
        lookups.set(name, lookup)
      }
      return lookup
    },
    forget(digest) {
      generation++
      for (const cache of [known, unknown]) {
        for (const [name, entry] of cache) if (entry.digest === digest) cache.delete(name)
      }
    },
    forgetAll() {
      generation++
      known.clear()
      unknown.clear()
    },
  }
}
