import type { Redis } from 'ioredis'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { CREDENTIAL_CHANGES_CHANNEL } from '../../shared/directory/record.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** The outcome of the check of a key. A key is called known if its outcome is `ok`. */
export interface Judgement {
  readonly ok: boolean
}

/** The collaborators of a key cache. */
export interface KeyCacheDeps {
  readonly directory: Pick<Directory, 'surfaceKeyByDigest'>
  readonly logger: Logger
  readonly now?: () => number
}

/** How a cache names keys and judges them. */
export interface KeyCacheOptions<J extends Judgement> {
  /** Returns the digest of a key by its name: its text if the key is public, its digest if it is secret. */
  readonly digestOf: (name: string) => string
  /** Judges the record of a key at a time. The record is undefined if the key is unknown. */
  readonly judge: (key: SurfaceKey | undefined, at: number) => J
  /** The outcome while the directory is unavailable. It is not cached. */
  readonly unavailable: J
}

const MAX_AGE_MS = 10_000
const MAX_KNOWN_KEYS = 200_000
const MAX_UNKNOWN_KEYS = 20_000

interface CachedKey<J> {
  readonly judgement: J
  readonly digest: string
  /** The end of the entry's age or of the key itself, whichever is first. */
  readonly validUntil: number
}

/**
 * Caches the surface keys of the directory. An entry lives 10 s at most, and is removed at once when its key changes, as
 * long as changes are pushed (`followCredentialChanges`). Unknown keys have a cache of their own, so that guessed keys
 * cannot evict real ones.
 */
export class KeyCache<J extends Judgement> {
  readonly #directory: Pick<Directory, 'surfaceKeyByDigest'>
  readonly #logger: Logger
  readonly #now: () => number
  readonly #options: KeyCacheOptions<J>
  readonly #known = new Map<string, CachedKey<J>>()
  readonly #unknown = new Map<string, CachedKey<J>>()
  readonly #lookups = new Map<string, Promise<J>>()
  /** The number of changes so far. A lookup that began before the last change is not cached. */
  #generation = 0

  constructor({ directory, logger, now = Date.now }: KeyCacheDeps, options: KeyCacheOptions<J>) {
    this.#directory = directory
    this.#logger = logger
    this.#now = now
    this.#options = options
  }

  /** Returns the outcome of a known key while its entry is valid. */
  known(name: string): J | undefined {
    const cached = this.#known.get(name)
    return cached !== undefined && cached.validUntil > this.#now() ? cached.judgement : undefined
  }

  /** Returns the cached outcome of an unknown key, or looks the key up. Concurrent calls share one lookup. */
  find(name: string): J | Promise<J> {
    const refused = this.#unknown.get(name)
    if (refused !== undefined && refused.validUntil > this.#now()) return refused.judgement
    let lookup = this.#lookups.get(name)
    if (lookup === undefined) {
      lookup = this.#lookUp(name).finally(() => this.#lookups.delete(name))
      this.#lookups.set(name, lookup)
    }
    return lookup
  }

  /** Removes the key with this digest, because it has changed. */
  forget(digest: string): void {
    this.#generation++
    for (const cache of [this.#known, this.#unknown]) {
      for (const [name, entry] of cache) if (entry.digest === digest) cache.delete(name)
    }
  }

  /** Removes all keys. */
  forgetAll(): void {
    this.#generation++
    this.#known.clear()
    this.#unknown.clear()
  }

  async #lookUp(name: string): Promise<J> {
    const { digestOf, judge, unavailable } = this.#options
    const startedIn = this.#generation
    const digest = digestOf(name)
    let record: SurfaceKey | undefined
    try {
      record = await this.#directory.surfaceKeyByDigest(digest)
    } catch (error) {
      this.#logger.warn(errorFields(error), 'a key could not be looked up')
      return unavailable
    }
    const at = this.#now()
    const judgement = judge(record, at)
    // The record may have been read before a change of the key.
    if (startedIn === this.#generation) {
      const expiresAt = judgement.ok && record?.expiresAt ? Date.parse(record.expiresAt) : Number.POSITIVE_INFINITY
      const entry = { judgement, digest, validUntil: Math.min(at + MAX_AGE_MS, expiresAt) }
      if (judgement.ok) setBounded(this.#known, MAX_KNOWN_KEYS, name, entry)
      else setBounded(this.#unknown, MAX_UNKNOWN_KEYS, name, entry)
    }
    return judgement
  }
}

/**
 * Removes keys from the caches when they change. Changes are pushed. When the push channel breaks or begins again, the
 * caches are emptied, because changes may have been missed. `subscriber` is a connection for this purpose alone.
 */
export function followCredentialChanges(
  { subscriber, logger }: { subscriber: Redis; logger: Logger },
  caches: readonly Pick<KeyCache<Judgement>, 'forget' | 'forgetAll'>[],
): void {
  const forgetAll = () => {
    for (const cache of caches) cache.forgetAll()
  }
  subscriber.on('ready', () => {
    forgetAll()
    subscriber.subscribe(CREDENTIAL_CHANGES_CHANNEL).catch(error => {
      logger.warn(errorFields(error), 'changes of credentials cannot be followed')
    })
  })
  subscriber.on('close', forgetAll)
  subscriber.on('message', (_channel, digest: string) => {
    for (const cache of caches) cache.forget(digest)
  })
}
