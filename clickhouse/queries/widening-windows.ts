import { LRUCache } from 'lru-cache'
import { readsTooMuch } from '../client.ts'

/** A search for the newest entries of a list. */
interface WindowedSearch<Entry, Time extends number | bigint> {
  /** All that the number of entries in a window depends on, but for the time. */
  readonly key: string
  /** Starts of the windows, the latest first. The last window contains all entries. */
  readonly starts: readonly Time[]
  /** Entries of a full page. */
  readonly limit: number
  /** Returns the newest entries since a time, the newest first, as many as a full page has. */
  readonly select: (since: Time) => Promise<Entry[]>
  readonly timeOf: (entry: Entry) => Time
}

/** A search with a longer key is not remembered. */
const KEY_CHARACTERS = 1_000
const REMEMBERED = 1_000

/**
 * Reads the newest entries of lists window by window, so that older data are not read if a window has a full page. People and
 * dashboards repeat their searches, and each window that is not enough costs a query. So a search begins with the window that was
 * enough for it the last time. Whatever that is, the result is the same.
 */
export class WideningWindows {
  readonly #enough = new LRUCache<string, number>({ max: REMEMBERED })

  /** Returns a full page of the newest entries, or all that there are. */
  async find<Entry, Time extends number | bigint>(search: WindowedSearch<Entry, Time>): Promise<Entry[]> {
    const { key } = search
    const first = Math.min(this.#enough.get(key) ?? 0, search.starts.length - 1)
    try {
      const { found, window } = await findSince(search, first)
      if (key.length <= KEY_CHARACTERS) this.#enough.set(key, window)
      return found
    } catch (error) {
      this.#enough.delete(key)
      if (first === 0 || !readsTooMuch(error)) throw error
      // There may be more now than there was.
      return (await findSince(search, 0)).found
    }
  }
}

/** Returns the entries of the first window that is enough, and the shortest one that would have been. */
async function findSince<Entry, Time extends number | bigint>(
  { starts, limit, select, timeOf }: WindowedSearch<Entry, Time>,
  first: number,
): Promise<{ readonly found: Entry[]; readonly window: number }> {
  let found: Entry[] = []
  for (const since of starts.slice(first)) {
    found = await select(since)
    if (found.length === limit) break
  }
  const last = found.at(-1)
  const shortest = found.length === limit && last !== undefined ? starts.findIndex(since => since <= timeOf(last)) : -1
  return { found, window: shortest < 0 ? starts.length - 1 : shortest }
}
