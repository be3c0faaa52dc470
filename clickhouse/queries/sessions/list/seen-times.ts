/** Tables with one row for each request that names a session. Their rows have the time of arrival and a surface. */
export const REQUEST_TABLES = ['session_identities', 'session_heartbeats', 'replay_chunks'] as const

const DAY_START_MS = 'toInt64(toUInt16(day)) * 86400000'

/**
 * Returns the time of spans of a row of `session_traces` as an expression of Unix ms. Only the day of their arrival is stored, so a
 * time by the clock of the sender counts within that day.
 */
export function withinDay(unixNano: 'first_start_unix_nano' | 'last_end_unix_nano'): string {
  return `greatest(${DAY_START_MS}, least(toInt64(intDiv(${unixNano}, 1000000)), ${DAY_START_MS} + 86399999))`
}
