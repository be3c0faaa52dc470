import { type ClickHouseClient, isClickHouseCode, OVER_LIMIT_CODES } from '../../clickhouse/client.ts'
import { type LogsFilter, nanosOf, type SearchLimits } from '../../clickhouse/queries/logs/logs-filter.ts'
import {
  type LogPosition,
  type LogRow,
  type LogsPage,
  selectLogCountAt,
  selectLogSizes,
  selectLogs,
  selectLogTimes,
} from '../../clickhouse/queries/logs/select-logs.ts'
import { MIB } from '../../schemas/units.ts'
import type { LogsReached } from './log-cursor.ts'

/** Selects a page of log records. */
interface LogSearch {
  readonly filter: LogsFilter
  /** Where the previous page ended. */
  readonly after: LogsReached | undefined
  readonly limit: number
}

/** A page of log records. */
interface LoadedLogs {
  /** The newest first. */
  readonly rows: readonly LogRow[]
  /** Whether the texts of the only record are cut. */
  readonly isCut: boolean
  /** Where the page ends, or undefined on the last page. */
  readonly reached: LogsReached | undefined
}

/** Bytes of the records of a page in the memory of ClickHouse. Almost all pages have less, and are one query. */
const RESULT_BYTES = 2 * MIB
/** Bytes of the records of a page whose records have more. */
const PAGE_BYTES = MIB
/** A record of more bytes is cut. */
const RECORD_BYTES = 4 * MIB

/**
 * Loads a page of log records, the newest first. The first queries read the times of its records, and no wide column. The last
 * one opens the granules with these times. Throws a TransientError if ClickHouse does not respond before the signal fires.
 */
export async function loadLogs(
  client: ClickHouseClient,
  { filter, after, limit }: LogSearch,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<LoadedLogs> {
  const [newTimes, offset] = await Promise.all([
    findTimes(client, { filter, after, limit: limit + 1 }, limits, signal),
    // Records at this position may have been deleted since, so that fewer are left out.
    after === undefined ? 0 : selectLogCountAt(client, filter, after.position, signal),
  ])
  const times = [...new Set(after === undefined ? newTimes : [after.position.nanos, ...newTimes])]
  if (times.length === 0) return { rows: [], isCut: false, reached: undefined }
  const leftOut = Math.min(offset, after?.shown ?? 0)
  const page = { filter, times, atMost: after?.position, offset: leftOut, limit: limit + 1 }
  const { rows, isCut, hasMore } = await loadWhatFits(client, page, limit, signal)
  return { rows, isCut, reached: hasMore ? reachedBy(rows, after?.position, leftOut) : undefined }
}

const SECOND_NANOS = 1_000_000_000n
/** The first period before the start of a page that is searched. Each further one is longer by the factor. */
const FIRST_WINDOW_NANOS = 60n * SECOND_NANOS
/** The same for a condition that few records meet. */
const FIRST_WINDOW_OF_FEW_NANOS = 3_600n * SECOND_NANOS
const WINDOW_FACTOR = 30n

/** Returns the times of the newest records that are older than the previous page, as many as a page has room for. */
async function findTimes(
  client: ClickHouseClient,
  { filter, after, limit }: LogSearch,
  limits: SearchLimits,
  signal: AbortSignal,
): Promise<string[]> {
  const { fromMs, toMs } = filter
  const end = after === undefined ? undefined : BigInt(after.position.nanos)
  if (fromMs === undefined || toMs === undefined || filter.traceId !== undefined) {
    return selectLogTimes(client, filter, { since: undefined, before: end, limit }, limits, signal)
  }
  const times: string[] = []
  const from = nanosOf(fromMs)
  let window = hasFew(filter) ? FIRST_WINDOW_OF_FEW_NANOS : FIRST_WINDOW_NANOS
  for (let before = end ?? nanosOf(toMs); before > from && times.length < limit; window *= WINDOW_FACTOR) {
    let since = before - window
    if (since < from) since = from
    const room = limit - times.length
    times.push(...(await selectLogTimes(client, filter, { since, before, limit: room }, limits, signal)))
    before = since
  }
  return times
}

function hasFew({ spanId, sessionId, words, attributes }: LogsFilter): boolean {
  return (
    spanId !== undefined ||
    sessionId !== undefined ||
    words.length > 0 ||
    attributes.some(({ operator }) => operator === '=')
  )
}

interface FittingLogs {
  readonly rows: readonly LogRow[]
  readonly isCut: boolean
  readonly hasMore: boolean
}

/** Loads the first records of a page that a response has room for, at least one. `page` has one more than the response shows. */
async function loadWhatFits(
  client: ClickHouseClient,
  page: LogsPage,
  limit: number,
  signal: AbortSignal,
): Promise<FittingLogs> {
  try {
    const rows = await selectLogs(client, page, { limitBytes: RESULT_BYTES }, signal)
    return { rows: rows.slice(0, limit), isCut: false, hasMore: rows.length > limit }
  } catch (error) {
    if (!isClickHouseCode(error, OVER_LIMIT_CODES.result)) throw error
  }
  const sizes = await selectLogSizes(client, page, signal)
  const count = countThatFits(sizes.slice(0, limit))
  const isCut = (sizes[0] ?? 0) > RECORD_BYTES
  const rows = await selectLogs(client, { ...page, limit: count }, { isCut }, signal)
  return { rows, isCut, hasMore: sizes.length > count }
}

/** Returns how many of the first records fit into a page: one if it is larger than a page. */
function countThatFits(sizes: readonly number[]): number {
  let bytesLeft = PAGE_BYTES
  const end = sizes.findIndex(bytes => {
    bytesLeft -= bytes
    return bytesLeft < 0
  })
  return end < 0 ? sizes.length : Math.max(end, 1)
}

/** Returns where a page ends that begins after `leftOut` records at the position `start`. */
function reachedBy(rows: readonly LogRow[], start: LogPosition | undefined, leftOut: number): LogsReached | undefined {
  const last = rows.at(-1)
  if (last === undefined) return undefined
  const position = { nanos: last.nanos, receivedMs: last.receivedMs, digest: last.digest }
  const atLast = rows.filter(row => isAt(row, position)).length
  return { position, shown: atLast + (start !== undefined && isAt(start, position) ? leftOut : 0) }
}

function isAt(row: LogPosition, position: LogPosition): boolean {
  return row.nanos === position.nanos && row.receivedMs === position.receivedMs && row.digest === position.digest
}
