/** A judged key, as it is cached. */
interface JudgedKey<J> {
  readonly judgement: J
  readonly digest: string
  /** The end of the entry's age or of the key itself, whichever is first. */
  readonly validUntil: number
  /** How often all keys had been forgotten when this one was judged. */
  readonly epoch: number
}

/**
 * Keeps at most `limit` judged keys by their names, and finds them by their digests too, so that a change of one key
 * costs the same however many are kept. When it is full, the entry that was written longest ago is removed.
 */
export class JudgedKeys<J> {
  readonly #limit: number
  readonly #byName = new Map<string, JudgedKey<J>>()
  /** Names of the entries by digest. */
  readonly #names = new Map<string, string>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#byName.size
  }

  get(name: string): JudgedKey<J> | undefined {
    return this.#byName.get(name)
  }

  set(name: string, entry: JudgedKey<J>): void {
    // Written again at the end, because the order of the map is the order of removal.
    this.#byName.delete(name)
    if (this.#byName.size >= this.#limit) this.#deleteOldest()
    this.#byName.set(name, entry)
    this.#names.set(entry.digest, name)
  }

  deleteDigest(digest: string): void {
    const name = this.#names.get(digest)
    if (name === undefined) return
    this.#names.delete(digest)
    this.#byName.delete(name)
  }

  clear(): void {
    this.#byName.clear()
    this.#names.clear()
  }

  #deleteOldest(): void {
    const oldest = this.#byName.entries().next()
    if (oldest.done) return
    const [name, { digest }] = oldest.value
    this.#byName.delete(name)
    this.#names.delete(digest)
  }
}
