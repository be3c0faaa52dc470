export interface LruCacheOptions<V> {
  /** Sum of the weights that are held; one value heavier than that is held alone. */
  readonly limit: number
  /** Asked whenever a value is put; 1 when left out. */
  readonly weightOf?: (value: V) => number
  /** A value older than this is not there any more. Never when left out. */
  readonly maxAgeMs?: number
  readonly now?: () => number
}

interface Entry<V> {
  readonly value: V
  readonly weight: number
  readonly putAtMs: number
}

/** Keeps what was used last, up to a sum of weights. */
export class LruCache<V> {
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry<V>>()
  readonly #options: LruCacheOptions<V>
  readonly #now: () => number
  #weight = 0

  constructor(options: LruCacheOptions<V>) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  get weight(): number {
    return this.#weight
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (this.#isOld(entry)) {
      this.delete(key)
      return undefined
    }
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  has(key: string): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && !this.#isOld(entry)
  }

  /** Puts a value, or weighs it again. */
  set(key: string, value: V): void {
    this.delete(key)
    const weight = this.#options.weightOf?.(value) ?? 1
    this.#entries.set(key, { value, weight, putAtMs: this.#now() })
    this.#weight += weight
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#options.limit || this.#entries.size === 1) break
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#weight -= entry.weight
  }

  #isOld(entry: Entry<V>): boolean {
    const { maxAgeMs } = this.#options
    return maxAgeMs !== undefined && this.#now() - entry.putAtMs >= maxAgeMs
  }
}
