import type { Redis } from 'ioredis'
import { parseRecord } from '../record.ts'
import { type ListPage, listNewest } from '../sorted-index.ts'
import type { Command } from '../transaction.ts'

/** An entry of a log. Its id is unique. */
interface LogEntry {
  readonly id: string
  readonly createdAt: string
}

/** The schema of entries, by which they are read. */
type Schema<T> = Parameters<typeof parseRecord>[2] & { readonly _output?: T }

/**
 * Returns the commands that add entries to a log and remove the oldest ones above `max`. A log is a sorted set of JSON texts,
 * scored with the time. Adding an entry again changes nothing. The id comes first, so that entries of the same
 * millisecond are ordered by it.
 */
export function appendEntries(key: string, entries: readonly LogEntry[], max: number): Command[] {
  if (entries.length === 0) return []
  const members = entries.flatMap(entry => [Date.parse(entry.createdAt), textOf(entry)])
  return [
    ['ZADD', key, ...members],
    ['ZREMRANGEBYRANK', key, 0, -(max + 1)],
  ]
}

/** Returns the text under which a log stores an entry. */
export function textOf({ id, createdAt, ...rest }: LogEntry): string {
  return JSON.stringify({ id, createdAt, ...rest })
}

/** Reads a page of a log, newest first. A page shorter than its limit is the last one. */
export function readEntries<T extends LogEntry>(
  redis: Redis,
  key: string,
  { limit, after }: ListPage,
  schema: Schema<T>,
): Promise<T[]> {
  // The text of an entry begins with its id, and is greater than this beginning.
  const place = after && { createdAtMs: after.createdAtMs, id: JSON.stringify({ id: after.id }).slice(0, -1) }
  return listNewest<T>(redis, key, { limit, after: place }, async texts =>
    texts.map(text => parseRecord(key, text, schema) as T),
  )
}
