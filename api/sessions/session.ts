import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type PageRequestsRow, selectPageRequests } from '../../clickhouse/queries/sessions/select-page-requests.ts'
import {
  type DeviceRow,
  type IdentityRow,
  type SessionFindingRow,
  type SessionReplayRow,
  type SessionTraceRow,
  selectSessionDevices,
  selectSessionFindings,
  selectSessionIdentities,
  selectSessionReplay,
  selectSessionTraces,
} from '../../clickhouse/queries/sessions/select-session.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import { readSession } from '../../schemas/http/sessions/operations.ts'
import {
  MISSING_NUMBERS_MAX,
  SESSION_LIST_MAX,
  type SessionAnswer,
  type SessionDevice,
  type SessionFinding,
  type SessionIdentity,
  type SessionPage,
  type SessionReplay,
  type SessionTrace,
  sessionIdSchema,
} from '../../schemas/http/sessions/schemas.ts'
import { MIB } from '../../schemas/units.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { JsonText, stringifyWithTexts } from '../../shared/json/json-text.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { type Outcome, okJson } from '../http/outcome.ts'
import { notFound, SESSIONS } from '../http/resource.ts'
import { loadSessionTimes } from './session-times.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingMerges'>
  readonly now: () => number
}

/**
 * Returns the route that reads one session: its identities, devices, traces, findings and replay
 * (docs/api/sessions.md#sessions).
 */
export function readSessionRoute(deps: Deps): Route {
  return guardedRoute(deps, readSession, {
    resource: SESSIONS,
    reply: answer => okJson(stringifyWithTexts(answer)),
    async run({ workspaceId, param, deadline }): Promise<Outcome<{ session: PresentedSession }>> {
      const sessionId = param('sessionId')
      if (!sessionIdSchema.safeParse(sessionId).success) return notFound(SESSIONS)
      const session = await loadSession(deps, { workspaceId, sessionId }, deps.now(), deadline)
      return session === undefined ? notFound(SESSIONS) : { ok: true, value: { session } }
    },
  })
}

/** Limit of the texts of all shown identities. One identity may have 256 KiB. */
const IDENTITY_TEXT_BYTES = 4 * MIB

/** A session whose traits are the texts that were sent. */
type PresentedSession = Omit<SessionAnswer['session'], 'identity' | 'identities'> & {
  readonly identity: PresentedIdentity | null
  readonly identities: readonly PresentedIdentity[]
}

/** Loads a session. Returns undefined if nothing of it is retained in this workspace. Throws what `selectRows` throws. */
async function loadSession(
  { clickhouse: client, directory }: Pick<Deps, 'clickhouse' | 'directory'>,
  key: SessionKey,
  nowMs: number,
  abortSignal: AbortSignal,
): Promise<PresentedSession | undefined> {
  const [times, identities, devices, traces, findings, pages, replay] = await Promise.all([
    loadSessionTimes(client, key, nowMs, abortSignal),
    selectSessionIdentities(client, key, { limit: SESSION_LIST_MAX, limitBytes: IDENTITY_TEXT_BYTES }, abortSignal),
    selectSessionDevices(client, key, SESSION_LIST_MAX, abortSignal),
    selectSessionTraces(client, key, SESSION_LIST_MAX, abortSignal),
    queryDirectory(directory.findingMerges(key.workspaceId)).then(merges =>
      selectSessionFindings(client, key, merges, SESSION_LIST_MAX, abortSignal),
    ),
    selectPageRequests(client, key, { limit: SESSION_LIST_MAX, missing: MISSING_NUMBERS_MAX }, abortSignal),
    selectSessionReplay(client, key, abortSignal),
  ])
  if (times === undefined) return undefined
  const shownIdentities = withinBytes(identities, IDENTITY_TEXT_BYTES).map(presentIdentity)
  const counts = {
    identityCount: totalOf(identities),
    deviceCount: totalOf(devices),
    traceCount: totalOf(traces),
    findingCount: totalOf(findings),
    pageCount: totalOf(pages),
  }
  const lists = [shownIdentities, devices, traces, findings, pages]
  const shown = lists.reduce((sum, { length }) => sum + length, 0)
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return {
    id: key.sessionId,
    identity: shownIdentities[0] ?? null,
    identities: shownIdentities,
    devices: devices.map(presentDevice),
    ...times,
    traces: traces.map(presentSessionTrace),
    findings: findings.map(presentSessionFinding),
    pages: pages.map(presentPage),
    replay: replay ? presentSessionReplay(replay) : null,
    ...counts,
    truncated: shown < total,
  }
}

function presentPage({ page, received, last, missing }: PageRequestsRow): SessionPage {
  const receivedCount = Number(received)
  return { id: page, receivedCount, missingCount: last + 1 - receivedCount, missing: [...missing] }
}

/** Returns how many rows there are in total, which every row states. */
function totalOf(rows: readonly { readonly total: string }[]): number {
  return Number(rows[0]?.total ?? 0)
}

/** Returns the first rows that fit the limit, and always the first one. */
function withinBytes(rows: readonly IdentityRow[], limitBytes: number): readonly IdentityRow[] {
  let left = limitBytes
  const end = rows.findIndex((row, i) => {
    left -= Object.values(row).reduce((sum, text) => sum + text.length, 0)
    return left < 0 && i > 0
  })
  return end < 0 ? rows : rows.slice(0, end)
}

/** An identity whose traits are the text that was sent. */
type PresentedIdentity = Omit<SessionIdentity, 'traits'> & { readonly traits: JsonText }

/** Returns an identity of a session as responses show it. Absent members are left out. */
function presentIdentity(row: IdentityRow): PresentedIdentity {
  return {
    identifier: row.identifier,
    source: { type: row.sourceType, name: row.sourceName },
    ...presentDeviceIds(row),
    ...(row.avatar && { avatar: row.avatar }),
    ...(row.email && { email: row.email }),
    ...(row.name && { name: row.name }),
    ...(row.country && { country: row.country }),
    traits: new JsonText(row.traits),
    attachedAt: rfc3339FromUnixMs(Number(row.receivedAtMs)),
  }
}

/** Returns a device of a session as responses show it. */
function presentDevice(row: DeviceRow): SessionDevice {
  return {
    ...presentDeviceIds(row),
    firstHeartbeatAt: rfc3339FromUnixMs(Number(row.firstMs)),
    lastHeartbeatAt: rfc3339FromUnixMs(Number(row.lastMs)),
    heartbeatCount: Number(row.heartbeatCount),
  }
}

function presentDeviceIds(row: Pick<DeviceRow, 'deviceId' | 'visitorId' | 'fpHash'>) {
  return {
    ...(row.deviceId && { deviceId: row.deviceId }),
    ...(row.visitorId && { visitorId: row.visitorId }),
    ...(row.fpHash && { fpHash: row.fpHash }),
  }
}

/** Returns a trace of a session as responses show it. */
function presentSessionTrace(row: SessionTraceRow): SessionTrace {
  return {
    id: row.traceId,
    traceId: row.traceId,
    startedAt: rfc3339FromUnixNano(BigInt(row.startUnixNano)),
    endedAt: rfc3339FromUnixNano(BigInt(row.endUnixNano)),
    spanCount: Number(row.spanCount),
    errorCount: Number(row.errorCount),
  }
}

/** Returns a finding of a session as responses show it. */
function presentSessionFinding(row: SessionFindingRow): SessionFinding {
  return {
    id: row.id,
    occurrenceCount: Number(row.occurrenceCount),
    lastSeenAt: rfc3339FromUnixNano(BigInt(row.lastSeenUnixNano)),
  }
}

/** Returns the summary of the replay of a session. */
function presentSessionReplay(row: SessionReplayRow): SessionReplay {
  return {
    chunkCount: Number(row.chunkCount),
    windowCount: Number(row.windowCount),
    eventCount: Number(row.eventCount),
    storedBytes: Number(row.storedBytes),
    decompressedBytes: Number(row.decompressedBytes),
    firstEventAt: rfc3339FromUnixMs(Number(row.firstEventMs)),
    lastEventAt: rfc3339FromUnixMs(Number(row.lastEventMs)),
  }
}
