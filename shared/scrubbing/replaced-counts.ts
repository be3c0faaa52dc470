/**
 * Counts replaced values by the name of their rule. The values of a record that is left out are taken back, without a copy of the
 * counts for each record.
 */
export class ReplacedCounts {
  #counts = new Map<string, number>()
  /** The values since `mark`. */
  readonly #recent = new Map<string, number>()
  #isCounting = true

  /** Counts a value. */
  add(name: string, values = 1): void {
    if (this.#isCounting) this.#recent.set(name, (this.#recent.get(name) ?? 0) + values)
  }

  /** Counts values once more. */
  addAll(counts: ReadonlyMap<string, number>): void {
    for (const [name, values] of counts) this.add(name, values)
  }

  /** Keeps what is counted: `sinceMark` and `rewind` are about what follows. */
  mark(): void {
    if (this.#recent.size === 0) return
    for (const [name, values] of this.#recent) this.#counts.set(name, (this.#counts.get(name) ?? 0) + values)
    this.#recent.clear()
  }

  /** Returns a copy of the counts since `mark`, or undefined if there are none. */
  sinceMark(): ReadonlyMap<string, number> | undefined {
    return this.#recent.size === 0 ? undefined : new Map(this.#recent)
  }

  /** Takes back what was counted since `mark`. */
  rewind(): void {
    if (this.#recent.size > 0) this.#recent.clear()
  }

  /** Reads values again that are counted already. */
  uncounted<T>(read: () => T): T {
    this.#isCounting = false
    try {
      return read()
    } finally {
      this.#isCounting = true
    }
  }

  /** Returns the counts and forgets them, or undefined if there are none. */
  take(): ReadonlyMap<string, number> | undefined {
    this.mark()
    const counts = this.#counts
    if (counts.size === 0) return undefined
    this.#counts = new Map()
    return counts
  }
}
