export interface LookupCacheOptions {
  readonly maxAgeMs: number
  /** How long an absence is believed: shorter, so that who was just added need not wait. */
  readonly absentMaxAgeMs: number
  readonly maxEntries: number
  readonly now: () => number
}

/**
 * Remembers what `load` found for a bounded time and number of keys; concurrent callers of one key share one load. A
 * load that fails is not remembered, and an old value is never served in its place.
 */
export function createLookupCache<V>(
  load: (key: string) => Promise<V | undefined>,
  { maxAgeMs, absentMaxAgeMs, maxEntries, now }: LookupCacheOptions,
): (key: string) => Promise<V | undefined> {
  const entries = new Map<string, { value: Promise<V | undefined>; expiresAtMs: number }>()

  return key => {
    const known = entries.get(key)
    if (known && known.expiresAtMs > now()) return known.value
    const value = load(key)
    // The age counts from before the load: what it returns may have changed while it was under way.
    const loadedAtMs = now()
    const entry = { value, expiresAtMs: loadedAtMs + maxAgeMs }
    entries.delete(key)
    entries.set(key, entry)
    const oldest = entries.keys().next()
    if (entries.size > maxEntries && !oldest.done) entries.delete(oldest.value)
    value.then(
      found => {
        if (found === undefined) entry.expiresAtMs = loadedAtMs + absentMaxAgeMs
      },
      () => {
        if (entries.get(key) === entry) entries.delete(key)
      },
    )
    return value
  }
}
