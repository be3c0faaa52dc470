import type { DeviceRow } from '../../clickhouse/queries/sessions/select-session-devices.ts'
import type { SessionFindingRow } from '../../clickhouse/queries/sessions/select-session-findings.ts'
import type { IdentityRow } from '../../clickhouse/queries/sessions/select-session-identities.ts'
import type { SessionReplayRow } from '../../clickhouse/queries/sessions/select-session-replay.ts'
import type { SessionTraceRow } from '../../clickhouse/queries/sessions/select-session-traces.ts'
import type {
  SessionDevice,
  SessionFinding,
  SessionIdentity,
  SessionReplay,
  SessionTrace,
} from '../../schemas/http/sessions/schemas.ts'
import { JsonText } from '../../shared/json/json-text.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'

/** An identity whose traits are the text that was sent. */
export type PresentedIdentity = Omit<SessionIdentity, 'traits'> & { readonly traits: JsonText }

/** Returns an identity of a session as responses show it. Absent members are left out. */
export function presentIdentity(row: IdentityRow): PresentedIdentity {
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
export function presentDevice(row: DeviceRow): SessionDevice {
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
export function presentSessionTrace(row: SessionTraceRow): SessionTrace {
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
export function presentSessionFinding(row: SessionFindingRow): SessionFinding {
  return {
    id: row.id,
    occurrenceCount: Number(row.occurrenceCount),
    lastSeenAt: rfc3339FromUnixNano(BigInt(row.lastSeenUnixNano)),
  }
}

/** Returns the summary of the replay of a session. */
export function presentSessionReplay(row: SessionReplayRow): SessionReplay {
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
