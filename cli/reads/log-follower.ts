import { createHash } from 'node:crypto'
import { type LogRecord, logsPageSchema } from '../../schemas/http/logs.ts'
import { watermarksPageSchema } from '../../schemas/http/watermarks.ts'
import { Follower } from '../../shared/follow/follower.ts'
import { type ApiReader, ApiRefusal } from './api-reader.ts'

/** Follows the log records that arrive, as conditions of a search select them. */
export function followLogs(reader: ApiReader, conditions: URLSearchParams, signal: AbortSignal): Follower<LogRecord> {
  return new Follower({
    watermark: () => readLogsWatermark(reader, signal),
    newest: most => readLogs(reader, conditions, most, signal),
    since(receivedFromMs) {
      const since = new URLSearchParams(conditions)
      since.set('receivedFrom', new Date(receivedFromMs).toISOString())
      return readLogs(reader, since, Number.POSITIVE_INFINITY, signal)
    },
    keyOf: record => createHash('sha256').update(JSON.stringify(record)).digest('base64'),
  })
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
