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
