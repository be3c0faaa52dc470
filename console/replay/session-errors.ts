import type { TimelineEntry } from '../api/generated/client.ts'
import type { RecordedEntry } from '../stage/messages.ts'

/** An error of a session, on the clock of its recording. */
export interface SessionError {
  /** Unix ms. */
  readonly at: number
  readonly text: string
}

/** Returns the errors of a session: its findings, and what the recording has of them, in the order of time. */
export function errorsOf(
  findings: readonly TimelineEntry[],
  recorded: readonly RecordedEntry[],
): readonly SessionError[] {
  const found = findings.flatMap(entry =>
    entry.kind === 'finding'
      ? [{ at: Date.parse(entry.at), text: `${entry.type || 'Exception'} ${entry.message}` }]
      : [],
  )
  const seen = recorded.filter(({ isError }) => isError).map(({ at, text }) => ({ at, text }))
  return [...found, ...seen].sort((a, b) => a.at - b.at)
}

/** An error that the player went to, and the time at which it put itself for that. */
export interface VisitedError {
  readonly error: SessionError
  readonly from: number
}

/**
 * Returns the position of the error after or before a time, or -1. While the time is that of an error which the player went to, it
 * is the one after or before that error: several may have the same time, and the player is put a moment before each.
 */
export function neighbourOf(
  errors: readonly SessionError[],
  direction: -1 | 1,
  time: number,
  visited: VisitedError | undefined,
): number {
  const isThere = visited && time >= visited.from && time <= Math.max(visited.error.at, visited.from)
  const at = isThere ? errors.findIndex(({ at, text }) => at === visited.error.at && text === visited.error.text) : -1
  if (at >= 0) return at + direction < errors.length ? at + direction : -1
  return direction > 0 ? errors.findIndex(error => error.at > time) : errors.findLastIndex(error => error.at < time)
}
