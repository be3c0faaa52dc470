import { z } from 'zod'
import { TIME_MAX_MS } from '../../clickhouse/queries/logs/logs-filter.ts'
import type { LogPosition } from '../../clickhouse/queries/logs/select-logs.ts'
import { decodeCursor, digestOf, encodeCursor, INVALID_CURSOR, type ListIdentity, OTHER_LIST } from '../http/cursor.ts'
import type { Outcome } from '../http/outcome.ts'
import { isSearchable, type SearchedTime } from './log-search.ts'

/** Where a page ends. */
export interface LogsReached {
  /** The position of the last record. */
  readonly position: LogPosition
  /** How many records at this position were shown. They are alike, so their number names the next one. */
  readonly shown: number
}

/** A cursor of a list of log records. */
interface LogCursor extends LogsReached {
  /** The time of the search, which the first page has chosen if the request leaves it open. */
  readonly time: SearchedTime
}

const SHOWN_MAX = 10_000_000

const integer = (max: bigint) =>
  z
    .string()
    .regex(/^\d{1,20}$/)
    .refine(digits => BigInt(digits) <= max)
const int64 = integer(2n ** 63n - 1n)
const uint64 = integer(2n ** 64n - 1n)
const unixMs = z.number().int().min(0).max(TIME_MAX_MS).nullable()

const cursorSchema = z
  .tuple([z.string(), int64, int64, uint64, z.number().int().min(1).max(SHOWN_MAX), unixMs, unixMs])
  .transform(([list, nanos, receivedMs, digest, shown, fromMs, toMs]) => ({
    list,
    position: { nanos, receivedMs, digest },
    shown,
    time: { fromMs: fromMs ?? undefined, toMs: toMs ?? undefined },
  }))

/** Encodes a cursor of the list. */
export function encodeLogCursor(list: ListIdentity, { position, shown, time }: LogCursor): string {
  const { nanos, receivedMs, digest } = position
  return encodeCursor([digestOf(list), nanos, receivedMs, digest, shown, time.fromMs ?? null, time.toMs ?? null])
}

/** Decodes a cursor, and refuses one that another list has returned, or whose time no search may have. */
export function decodeLogCursor(
  list: ListIdentity,
  text: string | undefined,
  ofTrace: boolean,
): Outcome<LogCursor | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok || cursor.value === undefined) return cursor
  if (cursor.value.list !== digestOf(list)) return OTHER_LIST
  return ofTrace || isSearchable(cursor.value.time) ? cursor : INVALID_CURSOR
}
