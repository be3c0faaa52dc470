import type { Redis } from 'ioredis'
import type { SurfaceKey } from '../../schemas/records/directory.ts'
import { TokenBucket } from '../../shared/concurrency/token-bucket.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { CREDENTIAL_CHANGES_CHANNEL } from '../../shared/directory/record.ts'
import type { IdentifiedRequest } from '../../shared/http/route.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { JudgedKeys } from './judged-keys.ts'

/** The outcome of the check of a key. A key is called known if its outcome is `ok`. */
interface Judgement {
  readonly ok: boolean
}

/** The collaborators of a key cache. */
export interface KeyCacheDeps {
  readonly directory: Pick<Directory, 'effectiveSurfaceKey'>
  readonly logger: Logger
  readonly now?: () => number
  /** Bounds the lookups of keys that were not seen before. All caches of a process share it. */
  readonly unseenLookups?: TokenBucket
  /** Called for a lookup that is refused, because too many unseen keys are looked up. */
  readonly onOverBudget?: () => void
}

/** How a cache names keys and judges them. */
interface KeyCacheOptions<J extends Judgement> {
  /** Returns the digest of a key by its name: its text if the key is public, its digest if it is secret. */
  readonly digestOf: (name: string) => string
  /** Judges the record of a key at a time. The record is undefined if the key is unknown. */
  readonly judge: (key: SurfaceKey | undefined, at: number) => J
  /** The outcome while the directory is unavailable. It is not cached. */
  readonly unavailable: J
  /** The outcome while too many unseen keys are looked up. It is not cached. */
  readonly overBudget: J
}

/**
 * Lookups of keys that were not seen before: 2,000 a second, and twice as many after a pause, such as the first requests of all
 * surfaces after a start. Well-formed keys can be made up by anyone, and the Redis that knows the real ones may be the one that
 * takes the commits. Each lookup is one or two reads of Redis, which serves about 100,000 a second.
 */
export const UNSEEN_LOOKUPS = { capacity: 4_000, refillMs: 2_000 }

const MAX_AGE_MS = 10_000
const MAX_KNOWN_KEYS = 200_000
const MAX_UNKNOWN_KEYS = 20_000

/** A lookup in progress. */
interface Lookup<J> {
  readonly outcome: Promise<J>
  readonly progress: Progress
}

interface Progress {
  /** Whether the key has changed since the lookup began, so that its outcome is not cached. */
  isStale: boolean
}

/**
 * Caches the surface keys of the directory. An entry lives 10 s at most, and is removed at once when its key changes, as
 * long as changes are pushed (`followCredentialChanges`). Unknown keys have a cache of their own, so that guessed keys
 * cannot evict real ones.
 */
export class KeyCache<J extends Judgement> {
  readonly #directory: Pick<Directory, 'effectiveSurfaceKey'>
  readonly #logger: Logger
  readonly #now: () => number
  readonly #options: KeyCacheOptions<J>
  readonly #unseenLookups: TokenBucket
  readonly #onOverBudget: (() => void) | undefined
  /** Keys that were known at their last lookup. Entries that are no longer valid show that a key was seen before. */
  readonly #known = new JudgedKeys<J>(MAX_KNOWN_KEYS)
  readonly #unknown = new JudgedKeys<J>(MAX_UNKNOWN_KEYS)
  /** Lookups in progress by the digests of their keys. */
  readonly #lookups = new Map<string, Lookup<J>>()

  /** How often all keys have been forgotten. */
  #epoch = 0
  #hits = 0
  #misses = 0

  constructor(
    { directory, logger, now = Date.now, unseenLookups, onOverBudget }: KeyCacheDeps,
    options: KeyCacheOptions<J>,
  ) {
    this.#directory = directory
    this.#logger = logger
    this.#now = now
    this.#options = options
    this.#unseenLookups = unseenLookups ?? new TokenBucket(UNSEEN_LOOKUPS, now)
    this.#onOverBudget = onOverBudget
  }

  /** Returns the outcome of a known key while its entry is valid. */
  known(name: string): J | undefined {
    const cached = this.#known.get(name)
    const isValid = cached !== undefined && cached.validUntil > this.#now() && cached.epoch === this.#epoch
    if (!isValid) return undefined
    this.#hits++
    return cached.judgement
  }

  /** Lookups of keys that were answered from here, known or unknown. */
  get hits(): number {
    return this.#hits
  }

  /** Lookups of keys that had to ask the directory, or were refused. */
  get misses(): number {
    return this.#misses
  }

  /**
   * Returns the cached outcome of an unknown key, or looks the key up. Concurrent calls share one lookup, which the log names
   * by its first request.
   */
  find(name: string, request?: IdentifiedRequest): J | Promise<J> {
    const refused = this.#unknown.get(name)
    if (refused !== undefined && refused.validUntil > this.#now()) {
      this.#hits++
      return refused.judgement
    }
    this.#misses++
    const digest = this.#options.digestOf(name)
    const current = this.#lookups.get(digest)
    if (current !== undefined) return current.outcome
    if (this.#known.get(name) === undefined && !this.#takeUnseenLookup()) return this.#options.overBudget
    const progress: Progress = { isStale: false }
    const outcome = this.#lookUp(name, digest, progress, request).finally(() => {
      if (!progress.isStale) this.#lookups.delete(digest)
    })
    this.#lookups.set(digest, { outcome, progress })
    return outcome
  }

  /** Removes the key with this digest, because it has changed. Costs the same however many keys are cached. */
  forget(digest: string): void {
    this.#known.deleteDigest(digest)
    this.#unknown.deleteDigest(digest)
    this.#abandon(digest)
  }

  /** Makes all entries invalid. */
  forgetAll(): void {
    this.#epoch++
    this.#unknown.clear()
    for (const digest of this.#lookups.keys()) this.#abandon(digest)
  }

  #takeUnseenLookup(): boolean {
    if (this.#unseenLookups.left < 1) {
      this.#onOverBudget?.()
      return false
    }
    this.#unseenLookups.take(1)
    return true
  }

  /** The record that a lookup reads may be the one before the change: later requests start another lookup. */
  #abandon(digest: string): void {
    const lookup = this.#lookups.get(digest)
    if (lookup === undefined) return
    lookup.progress.isStale = true
    this.#lookups.delete(digest)
  }

  async #lookUp(name: string, digest: string, progress: Progress, request?: IdentifiedRequest): Promise<J> {
    const { judge, unavailable } = this.#options
    let record: SurfaceKey | undefined
    try {
      record = await this.#directory.effectiveSurfaceKey(digest)
    } catch (error) {
      this.#logger.warn({ requestId: request?.requestId, ...errorFields(error) }, 'a key could not be looked up')
      return unavailable
    }
    const at = this.#now()
    const judgement = judge(record, at)
    // Real keys that are new do not use up the lookups.
    if (judgement.ok && this.#known.get(name) === undefined) this.#unseenLookups.giveBack(1)
    if (progress.isStale) return judgement
    const expiresAt = judgement.ok && record?.expiresAt ? Date.parse(record.expiresAt) : Number.POSITIVE_INFINITY
    const entry = { judgement, digest, validUntil: Math.min(at + MAX_AGE_MS, expiresAt), epoch: this.#epoch }
    if (judgement.ok) this.#known.set(name, entry)
    else {
      this.#known.deleteDigest(digest)
      this.#unknown.set(name, entry)
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
  subscriber.on('message', (_channel, message: string) => {
    const digests = message.split(' ')
    for (const cache of caches) for (const digest of digests) cache.forget(digest)
  })
}
