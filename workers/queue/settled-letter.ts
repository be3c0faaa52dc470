import type { RejectedRecords, ReplayedLetter, StoredLetter } from '../../schemas/queues/dead-letters.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import { reasonText } from '../../shared/runtime/reason.ts'
import { type RefusedFrame, rejectedRecords } from './letter-moves.ts'

/** Why a replayed request, or a part of it, could not be stored again. */
type ReplayRefusal = Pick<RefusedFrame, 'reason' | 'rejected' | 'storedRecords' | 'storedTables'>

/** A replayed request that a job is done with. Without a refusal, all that was replayed is stored. */
export interface SettledReplay {
  readonly frame: PayloadFrame
  readonly letter: ReplayedLetter
  readonly refusal?: ReplayRefusal | undefined
}

/**
 * Returns the frame from which the next row of a replayed letter in `dead_letters` is made. A letter that could not be
 * stored again stays the same letter: its bytes are in the object that they were in before.
 */
export function settledLetter({ frame, letter, refusal }: SettledReplay, settledAtMs: number): PayloadFrame {
  const row: StoredLetter = {
    ...letter,
    outcome: refusal === undefined ? 'stored' : 'dead',
    // The reason of a letter that is stored stays the one for which it was a letter.
    reason: refusal === undefined ? letter.reason : reasonText(refusal.reason),
    refusedAtMs: settledAtMs,
    ...whatIsLeft(letter, refusal),
  }
  // With the attributes, so that a worker that does not know replays leaves the payload (`payload-frame.ts`).
  return { ...withJsonBody(frame, row), attributes: frame.attributes }
}

/** Returns what of a replayed request is stored now, and which of its records are not. */
function whatIsLeft(
  letter: ReplayedLetter,
  refusal: ReplayRefusal | undefined,
): Pick<StoredLetter, 'storedTables' | 'rejected' | 'storedRecords'> {
  // Occurrences over a limit have no positions, and are not replayed.
  const uncounted = letter.rejected.filter(({ indexes }) => indexes.length === 0)
  if (refusal === undefined) return { storedTables: [], rejected: uncounted, storedRecords: letter.storedRecords }
  const { rejected, storedRecords = 0, storedTables = [] } = refusal
  if (rejected !== undefined) {
    const found = rejectedRecords(rejected)
    const others = uncounted.filter(({ reason }) => found.every(record => record.reason !== reason))
    return { storedTables: [], rejected: [...found, ...others], storedRecords: letter.storedRecords + storedRecords }
  }
  const tables = new Set([...letter.storedTables, ...storedTables])
  return { storedTables: [...tables], rejected: letter.rejected, storedRecords: letter.storedRecords }
}

/** Returns the positions of the records to replay, or undefined if nothing of the request is stored. */
export function positionsToReplay({ rejected }: { readonly rejected: readonly RejectedRecords[] }) {
  return rejected.length === 0 ? undefined : new Set(rejected.flatMap(({ indexes }) => indexes))
}

/** Returns the session that a JSON object names: frame attributes, or the body of a session event. Empty if it names none. */
export function sessionOf(text: string): string {
  const value = text === '' ? undefined : parseJson(text)
  const sessionId = typeof value === 'object' && value !== null && 'sessionId' in value ? value.sessionId : undefined
  return typeof sessionId === 'string' ? sessionId : ''
}
