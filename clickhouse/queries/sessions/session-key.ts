/** Identifies a session. */
export interface SessionKey {
  readonly workspaceId: string
  readonly sessionId: string
}

/**
 * Condition on the beginning of the primary key of every session table: a read touches only the granules of the
 * session.
 */
export const OF_SESSION = 'workspace_id = {workspaceId: String} AND session_id = {sessionId: String}'

/**
 * Condition on the rows of `exceptions` of a session: those that name it, and those of its traces. A browser names the session in
 * its own spans only, and the exception is where a service failed.
 */
export const EXCEPTIONS_OF_SESSION = `workspace_id = {workspaceId: String} AND (session_id = {sessionId: String}
  OR trace_id IN (SELECT trace_id FROM session_traces WHERE ${OF_SESSION}))`

/**
 * Bytes of ids in one query: a parameter stays below the default of `http_max_field_value_size`, which is 128 KiB. The official
 * client sends those of commands in the URL, where the encoded form counts.
 */
const PARAMETER_BYTES = 100_000

/** Returns where the part of a list of ids ends that begins here and fits into one parameter of a query. */
export function endOfPart(ids: readonly string[], begin: number): number {
  let bytes = 0
  let end = begin
  for (; end < ids.length; end++) {
    // Twice, because a character may be escaped before.
    bytes += 10 + 2 * new URLSearchParams([['', ids[end] ?? '']]).toString().length
    if (bytes > PARAMETER_BYTES && end > begin) break
  }
  return end
}

/**
 * Tables with the id of a session. `isSource`: the rows are stored requests. Tables that views fill come after the tables that the
 * views read.
 */
export const SESSION_TABLES = [
  { table: 'spans', isSource: true },
  { table: 'logs', isSource: true },
  // Failed spans are copied to `exceptions`.
  { table: 'failures', isSource: true },
  { table: 'exceptions', isSource: true },
  { table: 'exception_twins', isSource: false },
  { table: 'session_traces', isSource: false },
  { table: 'session_identities', isSource: true },
  { table: 'session_heartbeats', isSource: true },
  { table: 'replay_chunks', isSource: true },
] as const

/** One of SESSION_TABLES. */
export type SessionTable = (typeof SESSION_TABLES)[number]

const isIdentities = ({ table }: SessionTable) => table === 'session_identities'

/** The same in the order in which a person is erased. Identities go last, because they lead to the sessions. */
export const ERASED_TABLES: readonly SessionTable[] = [
  ...SESSION_TABLES.filter(table => !isIdentities(table)),
  ...SESSION_TABLES.filter(isIdentities),
]
