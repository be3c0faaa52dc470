import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  type SessionFindingsRow,
  type SessionRequestsRow,
  type SessionSpansRow,
  type SessionsKey,
  type SessionUserRow,
  selectSessionFindingCounts,
  selectSessionRequests,
  selectSessionSpans,
  selectSessionUsers,
} from '../../../clickhouse/queries/sessions/list/select-listed-sessions.ts'
import { LISTED_SURFACES_MAX, LISTED_TEXT_MAX, type ListedSession } from '../../../schemas/http/sessions/schemas.ts'
import { rfc3339FromUnixMs } from '../../http/format-time.ts'

/** Loads what a list shows of these sessions, in their order. Leaves out those of which nothing is retained any more. */
export async function loadListedSessions(
  client: ClickHouseClient,
  key: SessionsKey,
  nowMs: number,
  signal: AbortSignal,
): Promise<ListedSession[]> {
  if (key.sessionIds.length === 0) return []
  const [requests, users, spans, findings] = await Promise.all([
    selectSessionRequests(client, key, { surfaces: LISTED_SURFACES_MAX }, signal).then(byId),
    selectSessionUsers(client, key, { textCharacters: LISTED_TEXT_MAX }, signal).then(byId),
    selectSessionSpans(client, key, signal).then(byId),
    selectSessionFindingCounts(client, key, signal).then(byId),
  ])
  return key.sessionIds.flatMap(id => {
    const ofRequests = requests.get(id)
    const ofSpans = spans.get(id)
    const seen = timesSeen([ofRequests, ofSpans], nowMs)
    if (seen === undefined) return []
    return [
      { id, ...seen, ...presentCounts(ofRequests, ofSpans, findings.get(id)), identity: presentUser(users.get(id)) },
    ]
  })
}

function byId<R extends { readonly id: string }>(rows: readonly R[]): ReadonlyMap<string, R> {
  return new Map(rows.map(row => [row.id, row]))
}

/** Returns when a session was first and last seen. The end of a span may be in the future, by the clock of its sender. */
function timesSeen(
  rows: readonly (Pick<SessionRequestsRow | SessionSpansRow, 'firstMs' | 'lastMs'> | undefined)[],
  nowMs: number,
): Pick<ListedSession, 'firstSeenAt' | 'lastSeenAt'> | undefined {
  const known = rows.filter(row => row !== undefined)
  if (known.length === 0) return undefined
  const shown = (ms: number) => rfc3339FromUnixMs(Math.min(ms, nowMs))
  return {
    firstSeenAt: shown(Math.min(...known.map(({ firstMs }) => Number(firstMs)))),
    lastSeenAt: shown(Math.max(...known.map(({ lastMs }) => Number(lastMs)))),
  }
}

function presentCounts(
  requests: SessionRequestsRow | undefined,
  spans: SessionSpansRow | undefined,
  findings: SessionFindingsRow | undefined,
): Omit<ListedSession, 'id' | 'firstSeenAt' | 'lastSeenAt' | 'identity'> {
  return {
    surfaceIds: [...(requests?.surfaceIds ?? [])],
    traceCount: Number(spans?.traceCount ?? 0),
    errorCount: Number(spans?.errorCount ?? 0),
    findingCount: Number(findings?.findingCount ?? 0),
    replayChunkCount: Number(requests?.replayChunkCount ?? 0),
  }
}

function presentUser(row: SessionUserRow | undefined): ListedSession['identity'] {
  if (row === undefined) return null
  return {
    identifier: row.identifier,
    ...(row.name && { name: row.name }),
    ...(row.email && { email: row.email }),
  }
}
