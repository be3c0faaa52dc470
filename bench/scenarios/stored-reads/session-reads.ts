import type { SessionsPage } from '../../../schemas/http/sessions/schemas.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { identifiedSession, userOf } from '../../data/fill-sessions.ts'
import type { ComparedRead } from '../../measure/reads/compare-reads.ts'

const PAGE = 50
/** Sessions that are searched by their user. */
const USERS = 40

/** Returns the reads of lists of sessions of a workspace. */
export function sessionReads(workspaceId: string, sessions: number, endMs: number): ComparedRead[] {
  const list = (
    name: string,
    atLeast: number,
    query: (i: number) => Record<string, string>,
    alone?: (i: number) => string,
  ): ComparedRead => ({
    name: `sessions: ${name}`,
    atLeast,
    path: i => `/v3/sessions?${new URLSearchParams({ ...query(i), limit: String(PAGE) })}`,
    count: body => (JSON.parse(body) as SessionsPage).sessions.length,
    ...(alone && { alone }),
  })
  const lastSeen = (fromMs: number, toMs: number) => `
    SELECT session_id, any(surface_id), min(received_at), max(received_at) AS last FROM session_heartbeats
    WHERE workspace_id = '${workspaceId}' AND received_at >= ${timeOf(fromMs)} AND received_at < ${timeOf(toMs)}
    GROUP BY session_id ORDER BY last DESC LIMIT ${PAGE}`
  const earlier = (i: number) => {
    const toMs = endMs - (24 + (i % 72)) * HOUR_MS
    return { fromMs: toMs - HOUR_MS, toMs }
  }
  const every = Math.max(Math.floor(sessions / USERS / 6), 1)
  const user = (i: number) => userOf(identifiedSession((i % USERS) * every))
  return [
    list(
      'newest',
      PAGE,
      () => ({}),
      () => lastSeen(endMs - HOUR_MS, endMs),
    ),
    list(
      'of an earlier hour',
      PAGE,
      i => {
        const { fromMs, toMs } = earlier(i)
        return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
      },
      i => lastSeen(earlier(i).fromMs, earlier(i).toMs),
    ),
    list(
      'of a user',
      1,
      i => ({ user: user(i) }),
      i => `SELECT session_id, min(received_at), max(received_at) FROM session_heartbeats WHERE workspace_id = '${workspaceId}'
        AND session_id IN (SELECT session_id FROM session_identities WHERE workspace_id = '${workspaceId}' AND identifier = '${user(i)}')
        GROUP BY session_id`,
    ),
    list('with a finding', PAGE, () => ({ hasFinding: 'true' })),
  ]
}

const timeOf = (ms: number) => `fromUnixTimestamp64Milli(${ms}, 'UTC')`
