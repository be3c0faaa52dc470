import { createHash } from 'node:crypto'
import { type LogRecord, logsPageSchema } from '../../schemas/http/logs.ts'
import { watermarksPageSchema } from '../../schemas/http/watermarks.ts'
import { type ApiReader, ApiRefusal } from './api-reader.ts'

/** How far the clocks of edges and Redis may differ, and how long a body may arrive until it is accepted. */
const MARGIN_MS = 30_000

interface Shown {
  readonly count: number
  readonly receivedMs: number
}

/**
 * Reads the log records that arrive, each once. Everything that was accepted before a watermark was stored when the watermark was
 * read, so the lists after it have shown it: the next list begins with records that were received at the watermark, less a
 * margin. Records have no id, so those that a list repeats are recognized by their content, and equal ones are counted.
 */
export class LogFollower {
  readonly #reader: ApiReader
  readonly #conditions: URLSearchParams
  readonly #signal: AbortSignal
  #shown = new Map<string, Shown>()
  #settledMs = 0

  constructor(reader: ApiReader, conditions: URLSearchParams, signal: AbortSignal) {
    this.#reader = reader
    this.#conditions = conditions
    this.#signal = signal
  }

  /** Returns the newest records, at most `most`, the oldest of them first. Records that are stored and older are never shown. */
  async begin(most: number): Promise<LogRecord[]> {
    const settledMs = await readLogsWatermark(this.#reader, this.#signal)
    const known = await this.#readSince(settledMs)
    const tail = await readLogs(this.#reader, this.#conditions, most, this.#signal)
    this.#shown = joined(countsOf(known), countsOf(tail))
    this.#settledMs = settledMs
    return tail
  }

  /** Returns the records that were stored since the last call, the oldest first. After an error it can be called again. */
  async next(): Promise<LogRecord[]> {
    const settledMs = await readLogsWatermark(this.#reader, this.#signal)
    const found = await this.#readSince(this.#settledMs)
    const counts = countsOf(found)
    const left = new Map([...counts].map(([key, { count }]) => [key, count - (this.#shown.get(key)?.count ?? 0)]))
    const arrived = found.filter(record => {
      const key = keyOf(record)
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

  #readSince(settledMs: number): Promise<LogRecord[]> {
    const conditions = new URLSearchParams(this.#conditions)
    conditions.set('receivedFrom', new Date(settledMs - MARGIN_MS).toISOString())
    return readLogs(this.#reader, conditions, Number.POSITIVE_INFINITY, this.#signal)
  }
}

function keyOf(record: LogRecord): string {
  return createHash('sha256').update(JSON.stringify(record)).digest('base64')
}

function countsOf(records: readonly LogRecord[]): Map<string, Shown> {
  const counts = new Map<string, Shown>()
  for (const record of records) {
    const key = keyOf(record)
    counts.set(key, { count: (counts.get(key)?.count ?? 0) + 1, receivedMs: Date.parse(record.receivedAt) })
  }
  return counts
}

/** Returns the larger count of each record. */
function joined(a: ReadonlyMap<string, Shown>, b: ReadonlyMap<string, Shown>): Map<string, Shown> {
  const all = new Map(a)
  for (const [key, shown] of b) if (shown.count > (all.get(key)?.count ?? 0)) all.set(key, shown)
  return all
}

const PAGE_LIMIT = 500

/** Returns the newest records of a search, at most `most`, the oldest of them first. */
export async function readLogs(
  reader: ApiReader,
  conditions: URLSearchParams,
  most: number,
  signal: AbortSignal,
): Promise<LogRecord[]> {
  const found: LogRecord[] = []
  const query = new URLSearchParams(conditions)
  for (let hasMore = true; hasMore && found.length < most; ) {
    query.set('limit', String(Math.min(most - found.length, PAGE_LIMIT)))
    const page = await reader.get(`/v3/logs?${query}`, logsPageSchema, signal)
    // The caller is not a member of the workspace of the token any more.
    if (page === undefined) throw new ApiRefusal(404, undefined)
    found.push(...page.logs)
    hasMore = page.nextCursor !== null
    if (page.nextCursor !== null) query.set('cursor', page.nextCursor)
  }
  return found.reverse()
}

/** Returns a time in Unix ms: all log records of the workspace that were accepted before it are stored. */
async function readLogsWatermark(reader: ApiReader, signal: AbortSignal): Promise<number> {
  let settledMs = Number.POSITIVE_INFINITY
  const query = new URLSearchParams({ limit: '100' })
  for (let hasMore = true; hasMore; ) {
    const page = await reader.get(`/v3/watermarks?${query}`, watermarksPageSchema, signal)
    if (page === undefined) throw new ApiRefusal(404, undefined)
    const times = [page.readAt, ...page.watermarks.map(({ settledBefore }) => settledBefore.logs)]
    settledMs = Math.min(settledMs, ...times.map(time => Date.parse(time)))
    hasMore = page.nextCursor !== null
    if (page.nextCursor !== null) query.set('cursor', page.nextCursor)
  }
  return settledMs
}
