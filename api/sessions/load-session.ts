import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { type DeviceRow, selectSessionDevices } from '../../clickhouse/queries/sessions/select-session-devices.ts'
import { selectSessionFindings } from '../../clickhouse/queries/sessions/select-session-findings.ts'
import {
  type IdentityRow,
  selectSessionIdentities,
} from '../../clickhouse/queries/sessions/select-session-identities.ts'
import { type SessionReplayRow, selectSessionReplay } from '../../clickhouse/queries/sessions/select-session-replay.ts'
import { type SessionTraceRow, selectSessionTraces } from '../../clickhouse/queries/sessions/select-session-traces.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import { SESSION_LIST_MAX, type SessionAnswer } from '../../schemas/http/sessions/schemas.ts'
import { MIB } from '../../schemas/units.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'
import {
  type PresentedIdentity,
  presentDevice,
  presentIdentity,
  presentSessionFinding,
  presentSessionReplay,
  presentSessionTrace,
} from './present-session.ts'

/** Limit of the texts of all shown identities. One identity may have 256 KiB. */
const IDENTITY_TEXT_BYTES = 4 * MIB

/** A session whose traits are the texts that were sent. */
export type PresentedSession = Omit<SessionAnswer['session'], 'identity' | 'identities'> & {
  readonly identity: PresentedIdentity | null
  readonly identities: readonly PresentedIdentity[]
}

/** Loads a session. Returns undefined if nothing of it is retained in this workspace. Throws what `selectRows` throws. */
export async function loadSession(
  client: ClickHouseClient,
  key: SessionKey,
  abortSignal: AbortSignal,
): Promise<PresentedSession | undefined> {
  const [identities, devices, traces, findings, replay] = await Promise.all([
    selectSessionIdentities(client, key, { limit: SESSION_LIST_MAX, limitBytes: IDENTITY_TEXT_BYTES }, abortSignal),
    selectSessionDevices(client, key, SESSION_LIST_MAX, abortSignal),
    selectSessionTraces(client, key, SESSION_LIST_MAX, abortSignal),
    selectSessionFindings(client, key, SESSION_LIST_MAX, abortSignal),
    selectSessionReplay(client, key, abortSignal),
  ])
  const seen = timesSeen(identities, devices, traces, replay)
  if (seen === undefined) return undefined
  const shownIdentities = withinBytes(identities, IDENTITY_TEXT_BYTES).map(presentIdentity)
  const counts = {
    identityCount: totalOf(identities),
    deviceCount: totalOf(devices),
    traceCount: totalOf(traces),
    findingCount: totalOf(findings),
  }
  const shown = shownIdentities.length + devices.length + traces.length + findings.length
  return {
    id: key.sessionId,
    identity: shownIdentities[0] ?? null,
    identities: shownIdentities,
    devices: devices.map(presentDevice),
    ...seen,
    traces: traces.map(presentSessionTrace),
    findings: findings.map(presentSessionFinding),
    replay: replay ? presentSessionReplay(replay) : null,
    ...counts,
    truncated: shown < counts.identityCount + counts.deviceCount + counts.traceCount + counts.findingCount,
  }
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

/**
 * Returns when the session was first and last seen. The times are those at which the service received its requests, or those
 * of its spans if it sent spans only.
 */
function timesSeen(
  identities: readonly IdentityRow[],
  devices: readonly DeviceRow[],
  traces: readonly SessionTraceRow[],
  replay: SessionReplayRow | undefined,
): { firstSeenAt: string; lastSeenAt: string } | undefined {
  const [identity] = identities
  const [device] = devices
  const times = [
    ...(identity ? [identity.firstMs, identity.receivedAtMs] : []),
    ...(device ? [device.sessionFirstMs, device.lastMs] : []),
    ...(replay ? [replay.firstReceivedMs, replay.lastReceivedMs] : []),
  ].map(Number)
  if (times.length > 0) {
    return { firstSeenAt: rfc3339FromUnixMs(Math.min(...times)), lastSeenAt: rfc3339FromUnixMs(Math.max(...times)) }
  }
  const [trace] = traces
  if (trace === undefined) return undefined
  return {
    firstSeenAt: rfc3339FromUnixNano(BigInt(trace.firstUnixNano)),
    lastSeenAt: rfc3339FromUnixNano(BigInt(trace.lastUnixNano)),
  }
}
