/** How far the clocks of edges and Redis may differ, and how long a body may arrive until it is accepted. */
const MARGIN_MS = 30_000

/** Reads of records, which have no id. */
interface FollowedReads<T> {
  /** Returns a time in Unix ms: everything that was accepted before it is stored. */
  watermark(): Promise<number>
  /** Returns the records that were received at or after a time in Unix ms, the oldest first. */
  since(receivedFromMs: number): Promise<T[]>
  /** Returns the newest records, the oldest of them first. */
  newest(most: number): Promise<T[]>
  /** Returns a text that is the same for equal records. */
  keyOf(record: T): string
}

interface Shown {
  readonly count: number
  readonly receivedMs: number
}

/**
 * Reads the records that arrive, each once. Everything that was accepted before a watermark was stored when the watermark was
 * read, so the lists after it have shown it: the next list begins with records that were received at the watermark, less a
 * margin. Those that a list repeats are recognized by their content, and equal ones are counted.
 */
export class Follower<T extends { readonly receivedAt: string }> {
  readonly #reads: FollowedReads<T>
  #shown = new Map<string, Shown>()
  #settledMs = 0

  constructor(reads: FollowedReads<T>) {
    this.#reads = reads
  }

  /** Returns the newest records, at most `most`, the oldest of them first. Records that are stored and older are never shown. */
  async begin(most: number): Promise<T[]> {
    const settledMs = await this.#reads.watermark()
    const known = await this.#reads.since(settledMs - MARGIN_MS)
    const tail = await this.#reads.newest(most)
    this.#shown = joined(this.#countsOf(known), this.#countsOf(tail))
    this.#settledMs = settledMs
    return tail
  }

  /** Returns the records that were stored since the last call, the oldest first. After an error it can be called again. */
  async next(): Promise<T[]> {
    const settledMs = await this.#reads.watermark()
    const found = await this.#reads.since(this.#settledMs - MARGIN_MS)
    const counts = this.#countsOf(found)
    const left = new Map([...counts].map(([key, { count }]) => [key, count - (this.#shown.get(key)?.count ?? 0)]))
    const arrived = found.filter(record => {
      const key = this.#reads.keyOf(record)
      const count = left.get(key) ?? 0
      left.set(key, count - 1)
      return count > 0
    })
    const keptFromMs = settledMs - MARGIN_MS
    const all = joined(this.#shown, counts)
    this.#shown = new Map([...all].filter(([, { receivedMs }]) => receivedMs >= keptFromMs))
    this.#settledMs = settledMs
    return arrived
  }

  #countsOf(records: readonly T[]): Map<string, Shown> {
    const counts = new Map<string, Shown>()
    for (const record of records) {
      const key = this.#reads.keyOf(record)
      counts.set(key, { count: (counts.get(key)?.count ?? 0) + 1, receivedMs: Date.parse(record.receivedAt) })
    }
    return counts
  }
}

/** Returns the larger count of each record. */
function joined(a: ReadonlyMap<string, Shown>, b: ReadonlyMap<string, Shown>): Map<string, Shown> {
  const all = new Map(a)
  for (const [key, shown] of b) if (shown.count > (all.get(key)?.count ?? 0)) all.set(key, shown)
  return all
}
