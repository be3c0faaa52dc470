import { z } from 'zod'
import type { LetterKey } from '../../clickhouse/queries/letters/letter.ts'
import { readLetterId } from '../../letters/letter-id.ts'
import type { Selection } from '../../letters/select-page.ts'
import { decodeCursor, encodeCursor } from '../http/cursor.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { type Conditions, filterOf } from './present-letter.ts'

/** The position before the first letter has no values. */
const cursorSchema = z
  .tuple([z.number().int().min(0), z.string().max(300), z.number().int().min(0)])
  .or(z.tuple([]))
  .transform(([receivedAtMs, jobId, index]): LetterKey | undefined =>
    receivedAtMs === undefined || jobId === undefined || index === undefined
      ? undefined
      : { receivedAtMs, jobId, index },
  )

/** Reads a cursor of a list or a step. */
export function readCursor(cursor: string | undefined): Outcome<LetterKey | undefined> {
  return decodeCursor(cursorSchema, cursor)
}

/** Returns the cursor of a position. */
export function cursorOf(after: LetterKey | undefined): string {
  return encodeCursor(after ? [after.receivedAtMs, after.jobId, after.index] : [])
}

/** Returns the selection of a body with ids or a filter. */
export function selectionOf(body: {
  ids?: readonly string[] | undefined
  filter?: Conditions | undefined
}): Outcome<Selection> {
  if (body.ids === undefined) return { ok: true, value: { filter: filterOf(body.filter ?? {}) } }
  const keys = body.ids.map(readLetterId)
  const malformed = keys.indexOf(undefined)
  if (malformed >= 0) return invalid(`ids.${malformed} must be the id of a dead letter`)
  return { ok: true, value: { keys: keys.filter(key => key !== undefined) } }
}
