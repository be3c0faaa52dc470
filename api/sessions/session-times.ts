import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type SessionRequestsRow,
  type SessionSpansRow,
  type StatedTimes,
  selectSessionRequests,
  selectSessionSpans,
} from '../../clickhouse/queries/sessions/select-listed-sessions.ts'
import type { SessionKey } from '../../clickhouse/queries/sessions/session-key.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'

/** When a session was first and last seen (docs/api/sessions.md#session-times). */
interface SessionTimes {
  readonly firstSeenAt: string
  readonly lastSeenAt: string
  /** Present if nothing of the session states its time. */
  readonly timesOfArrival?: true
}

/** Two times, in Unix nanoseconds. Those of spans are shown as precisely as they were sent. */
interface Extent {
  readonly first: bigint
  readonly last: bigint
  readonly isOfSpans: boolean
}

/** A session was sent afterwards if all of it arrived later than this. */
const LATE_MS = 5 * MINUTE_MS
const NANOS_PER_MS = 1_000_000n

/** Loads the times of one session as a list has them. Returns undefined if nothing of it is retained. */
export async function loadSessionTimes(
  client: ClickHouseClient,
  { workspaceId, sessionId }: SessionKey,
  nowMs: number,
  signal: AbortSignal,
): Promise<SessionTimes | undefined> {
  const key = { workspaceId, sessionIds: [sessionId] }
  const [[requests], [spans]] = await Promise.all([
    selectSessionRequests(client, key, { surfaces: 1 }, signal),
    selectSessionSpans(client, key, signal),
  ])
  return sessionTimes(requests, spans, nowMs)
}

/**
 * Returns the times of a session: those of its spans and its recording, and the arrivals of its identities and heartbeats. If all
 * that states a time was sent afterwards, arrivals say nothing about the session, and count only if nothing else is known.
 */
export function sessionTimes(
  requests: SessionRequestsRow | undefined,
  spans: SessionSpansRow | undefined,
  nowMs: number,
): SessionTimes | undefined {
  const stated = [statedExtent(requests, false), statedExtent(spans, true)].filter(extent => extent !== undefined)
  const arrivals = requests === undefined || requests.firstArrivalMs === '0' ? [] : [arrivalExtent(requests)]
  if (stated.length > 0) {
    const isLate = stated.every(({ latenessMs }) => latenessMs > LATE_MS)
    return present(isLate ? stated : [...stated, ...arrivals], nowMs)
  }
  if (arrivals.length > 0) return { ...present(arrivals, nowMs), timesOfArrival: true }
  if (spans === undefined) return undefined
  const sent = { first: BigInt(spans.firstSentNano), last: BigInt(spans.lastSentNano), isOfSpans: true }
  return present([sent], nowMs)
}

function statedExtent(times: StatedTimes | undefined, isOfSpans: boolean) {
  if (times === undefined || times.firstNano === '0') return undefined
  const { firstNano, lastNano, latenessMs } = times
  return { first: BigInt(firstNano), last: BigInt(lastNano), isOfSpans, latenessMs: Number(latenessMs) }
}

function arrivalExtent({ firstArrivalMs, lastArrivalMs }: SessionRequestsRow): Extent {
  return {
    first: BigInt(firstArrivalMs) * NANOS_PER_MS,
    last: BigInt(lastArrivalMs) * NANOS_PER_MS,
    isOfSpans: false,
  }
}

/** Returns the times that some extents have together. A time in the future, by the clock of a sender, is the current one. */
function present(extents: readonly Extent[], nowMs: number): SessionTimes {
  const earliest = extents.reduce((one, other) => (other.first < one.first ? other : one))
  const latest = extents.reduce((one, other) => (other.last > one.last ? other : one))
  const shown = (nano: bigint, { isOfSpans }: Extent) => {
    const ms = Number(nano / NANOS_PER_MS)
    return isOfSpans && ms <= nowMs ? rfc3339FromUnixNano(nano) : rfc3339FromUnixMs(Math.min(ms, nowMs))
  }
  return { firstSeenAt: shown(earliest.first, earliest), lastSeenAt: shown(latest.last, latest) }
}
