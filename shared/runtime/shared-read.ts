/**
 * Returns a function that reads at most once in `keepMs`. Calls meanwhile share the last read, so that the metrics of one
 * report are of one moment, and several scrapers cost no more than one.
 */
export function shareReads<T>(keepMs: number, read: () => Promise<T>, now: () => number = Date.now): () => Promise<T> {
  let last: Promise<T> | undefined
  let lastAtMs = 0
  return () => {
    if (last === undefined || now() - lastAtMs >= keepMs) {
      lastAtMs = now()
      last = read()
    }
    return last
  }
}
