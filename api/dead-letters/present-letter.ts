import type { Letter, LetterFilter } from '../../clickhouse/queries/letters/letter.ts'
import type { ClaimState } from '../../letters/letter-claims.ts'
import { letterId } from '../../letters/letter-id.ts'
import type { SkippedLetter } from '../../letters/replay-letters.ts'
import type { LetterEntry, LettersReplayed, ListLettersQuery } from '../../schemas/http/dead-letters.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'

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
