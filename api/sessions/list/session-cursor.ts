import { z } from 'zod'
import type { SessionPosition } from '../../../clickhouse/queries/sessions/list/select-sessions-page.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import {
  decodeCursor,
  digestOf,
  encodeCursor,
  INVALID_CURSOR,
  type ListIdentity,
  OTHER_LIST,
} from '../../http/cursor.ts'
import type { Outcome } from '../../http/outcome.ts'

/** A cursor of a list of sessions. */
interface SessionCursor {
  /** The last session of the page. */
  readonly last: SessionPosition
  /** Requests of this time or later do not count on any page, Unix ms. */
  readonly beforeMs: number
}

/** How far the clock of another process of the API may be ahead of that of this one. */
const CLOCK_DIFFERENCE_MS = HOUR_MS

const cursorSchema = z
  .tuple([
    z.string(),
    z.string().regex(/^\d{1,15}$/),
    z.string().regex(/^[0-9a-f]{32}$/),
    z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  ])
  .transform(([list, lastMs, idHash, beforeMs]) => ({ list, last: { lastMs, idHash }, beforeMs }))

/** Encodes a cursor of the list. */
export function encodeSessionCursor(list: ListIdentity, { last, beforeMs }: SessionCursor): string {
  return encodeCursor([digestOf(list), last.lastMs, last.idHash, beforeMs])
}

/** Decodes a cursor, and refuses one that another list has returned or whose list begins in the future. */
export function decodeSessionCursor(
  list: ListIdentity,
  text: string | undefined,
  nowMs: number,
): Outcome<SessionCursor | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok || cursor.value === undefined) return cursor
  if (cursor.value.list !== digestOf(list)) return OTHER_LIST
  if (cursor.value.beforeMs > nowMs + CLOCK_DIFFERENCE_MS) return INVALID_CURSOR
  return cursor
}
