import { DAY_MS } from '../../schemas/units.ts'
import { workspaceIdOf, workspaceNumberOf } from './filled-time.ts'
import { runStatements, withPatientClient } from './insert-parts.ts'
import { DAYS } from './stored-traces.ts'

const HEARTBEATS = 10
const HEARTBEAT_MS = 30_000
const TRACES = 3
/** Every third session names its user, and every twentieth has a finding. */
const IDENTIFIED_EVERY = 3
const FINDING_EVERY = 20

/** Tables with rows of sessions, which are emptied and filled. */
const TABLES = ['session_heartbeats', 'session_identities', 'session_traces', 'session_findings']

/** Returns the user of an identified session by its number. */
export const userOf = (session: number) => `user-${session}@example.com`
/** Returns the number of the i-th identified session of the first workspace. Even numbers are of that workspace. */
export const identifiedSession = (i: number) => 2 * IDENTIFIED_EVERY * i

/**
 * Stores sessions that began in the days until `endMs`, one after the other: heartbeats of five minutes, traces, and for some a
 * user and a finding. Those of a day are one part of each table.
 */
export async function fillSessions(url: string, sessions: number, endMs: number): Promise<void> {
  const perDay = Math.floor(sessions / DAYS)
  const days = Array.from({ length: DAYS }, (_, day) => day)
  await withPatientClient(url, async client => {
    await runStatements(
      client,
      TABLES.map(table => `TRUNCATE TABLE ${table}`),
    )
    await runStatements(
      client,
      days.flatMap(day => insertsOf(sessionsQuery(day * perDay, perDay, endMs - (DAYS - day) * DAY_MS))),
    )
  })
}

const AT = (afterMs: string) => `fromUnixTimestamp64Milli(toInt64(beganMs + ${afterMs}), 'UTC')`

function sessionsQuery(first: number, count: number, fromMs: number): string {
  return `
    SELECT number + ${first} AS session, ${fromMs} + intDiv(number * ${DAY_MS}, ${count}) - ${HEARTBEATS * HEARTBEAT_MS} AS beganMs,
      ${workspaceIdOf(workspaceNumberOf('(session + 1)'))} AS workspace, concat('srf_', workspace) AS surface,
      concat('session-', lower(hex(sipHash64(session)))) AS id
    FROM numbers(${count})`
}

function insertsOf(sessions: string): string[] {
  return [
    `INSERT INTO session_heartbeats (workspace_id, surface_id, session_id, received_at, device_id, visitor_id, fp_hash)
     SELECT workspace, surface, id, ${AT(`beat * ${HEARTBEAT_MS}`)}, concat('device-', id), concat('visitor-', id), ''
     FROM (${sessions}) ARRAY JOIN range(${HEARTBEATS}) AS beat`,
    `INSERT INTO session_identities (workspace_id, surface_id, session_id, received_at, identifier, source_type, email, name, traits)
     SELECT workspace, surface, id, ${AT('1000')}, concat('user-', toString(session), '@example.com'), 'email',
       concat('user-', toString(session), '@example.com'), concat('User ', toString(session)), '{"plan":"pro"}'
     FROM (${sessions}) WHERE session % ${IDENTIFIED_EVERY} = 0`,
    `INSERT INTO session_traces (day, workspace_id, session_id, trace_id, first_start_unix_nano, last_end_unix_nano, span_count,
       error_count)
     SELECT toDate(${AT('0')}), workspace, id, reinterpretAsFixedString(sipHash128(session, trace)),
       toUInt64(beganMs + trace * 60000) * 1000000, toUInt64(beganMs + trace * 60000 + 200) * 1000000, 12, session % 7 = 0
     FROM (${sessions}) ARRAY JOIN range(${TRACES}) AS trace`,
    `INSERT INTO session_findings (day, workspace_id, session_id, finding_id, last_seen_unix_nano, occurrence_count)
     SELECT toDate(${AT('0')}), workspace, id, concat('fnd_', leftPad(translate(toString(session % 500), '0189', 'wxyz'), 26, 'a')),
       toUInt64(beganMs + 1000) * 1000000, 1
     FROM (${sessions}) WHERE session % ${FINDING_EVERY} = 0`,
  ]
}
