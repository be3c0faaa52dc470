import { z } from 'zod'
import type { Letter, LetterFilter, LetterKey } from '../../clickhouse/queries/letters/letter.ts'
import type { ClaimState } from '../../letters/letter-claims.ts'
import { letterId, readLetterId } from '../../letters/letter-id.ts'
import type { SkippedLetter } from '../../letters/replay-letters.ts'
import type { Selection } from '../../letters/select-page.ts'
import type { LetterEntry, LettersReplayed, ListLettersQuery } from '../../schemas/http/dead-letters.ts'
import { decodeCursor, encodeCursor } from '../http/cursor.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'

/** Returns the entry of a letter in a list. */
export function presentLetter(letter: Letter, claim: ClaimState | undefined): LetterEntry {
  const { queue, surfaceId, reason, receivedAtMs, settledAtMs, bodyBytes, attempt, outcome } = letter
  const isReplaying = outcome === 'dead' && claim !== undefined && claim.attempt > attempt
  return {
    id: letterId(letter),
    state: outcome === 'stored' ? 'replayed' : isReplaying ? 'replaying' : 'dead',
    queue,
    surfaceId,
    reason,
    receivedAt: rfc3339FromUnixMs(receivedAtMs),
    settledAt: rfc3339FromUnixMs(settledAtMs),
    bodyBytes,
    replays: Math.max(attempt, claim?.attempt ?? 0),
  }
}

/** The conditions of a query or a body. */
export type Conditions = Pick<ListLettersQuery, 'state' | 'queue' | 'surface' | 'reason' | 'from' | 'to'>

/** Returns the filter of conditions. */
export function filterOf({ state, queue, surface, reason, from, to }: Conditions): LetterFilter {
  return {
    queue,
    reason,
    surfaceId: surface,
    outcome: state && (state === 'replayed' ? 'stored' : 'dead'),
    fromMs: from === undefined ? undefined : Date.parse(from),
    toMs: to === undefined ? undefined : Date.parse(to),
  }
}

/** Returns the letters that a step has not changed. */
export function presentSkipped(skipped: readonly SkippedLetter[]): LettersReplayed['skipped'] {
  return skipped.map(({ key, reason }) => ({ id: letterId(key), reason }))
}

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

/** Dead letters. */
export const DEAD_LETTERS: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such dead letter, or it is no longer retained' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'dead letters are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}
