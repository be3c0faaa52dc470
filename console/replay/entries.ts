import type { RecordedEntry } from '../stage/messages.ts'

const ENTRIES_MAX = 5_000

const textOf = ({ at, kind, text }: RecordedEntry) => `${at} ${kind} ${text}`

/** Adds entries to a list in the order of time. Portions are read again after a seek, so that entries come again. */
export function merged(known: readonly RecordedEntry[], added: readonly RecordedEntry[]): readonly RecordedEntry[] {
  const texts = new Set(known.map(textOf))
  const fresh = added.filter(entry => !texts.has(textOf(entry)))
  if (fresh.length === 0) return known
  return [...known, ...fresh].sort((a, b) => a.at - b.at).slice(-ENTRIES_MAX)
}

/** Returns a key for each entry. A page may write the same line several times at once. */
export function keysOf(entries: readonly RecordedEntry[]): readonly string[] {
  const seen = new Map<string, number>()
  return entries.map(entry => {
    const text = textOf(entry)
    const before = seen.get(text) ?? 0
    seen.set(text, before + 1)
    return `${text} ${before}`
  })
}
