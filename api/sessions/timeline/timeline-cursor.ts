import { z } from 'zod'
import { type TimelinePosition, UNIX_NANO_MAX } from '../../../clickhouse/queries/sessions/timeline/select-timeline.ts'
import { TIMELINE_KINDS } from '../../../schemas/http/sessions/timeline.ts'
import { decodeCursor, digestOf, encodeCursor, type ListIdentity, OTHER_LIST } from '../../http/cursor.ts'
import type { Outcome } from '../../http/outcome.ts'

const cursorSchema = z
  .tuple([
    z.string(),
    z
      .string()
      .regex(/^\d{1,20}$/)
      .refine(digits => BigInt(digits) <= UNIX_NANO_MAX),
    z.enum(TIMELINE_KINDS),
    z.string().regex(/^[0-9a-f]{32}$/),
  ])
  .transform(([list, at, kind, tie]) => ({ list, position: { at: BigInt(at), kind, tie } }))

/** Encodes the position after which the next page of a timeline begins. */
export function encodeTimelineCursor(list: ListIdentity, { at, kind, tie }: TimelinePosition): string {
  return encodeCursor([digestOf(list), String(at), kind, tie])
}

/** Decodes a cursor, and refuses one that another timeline has returned. */
export function decodeTimelineCursor(
  list: ListIdentity,
  text: string | undefined,
): Outcome<TimelinePosition | undefined> {
  const cursor = decodeCursor(cursorSchema, text)
  if (!cursor.ok) return cursor
  if (cursor.value === undefined) return { ok: true, value: undefined }
  const { list: digest, position } = cursor.value
  return digest === digestOf(list) ? { ok: true, value: position } : OTHER_LIST
}
