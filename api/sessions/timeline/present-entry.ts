import type { TimelineRow, TimelineRows } from '../../../clickhouse/queries/sessions/timeline/timeline-sources.ts'
import type { TimelineEntry, TimelineKind } from '../../../schemas/http/sessions/timeline.ts'
import { SPAN_STATUSES } from '../../../schemas/http/traces/schemas.ts'
import { millisecondsBetween, rfc3339FromUnixMs, rfc3339FromUnixNano } from '../../http/format-time.ts'

type Presenters = {
  readonly [K in TimelineKind]: (row: TimelineRows[K]) => Extract<TimelineEntry, { readonly kind: K }>
}

/** Present rows as entries of a timeline, by their kinds. Absent members are left out. */
export const PRESENT_ENTRY: Presenters = {
  span: row => ({
    kind: 'span',
    ...common(row),
    traceId: row.traceId,
    spanId: row.spanId,
    ...(isPresent(row.parentSpanId) && { parentSpanId: row.parentSpanId }),
    name: row.spanName,
    serviceName: row.serviceName,
    durationMs: millisecondsBetween(BigInt(row.at), BigInt(row.endUnixNano)),
    status: SPAN_STATUSES[row.statusCode] ?? SPAN_STATUSES[0],
  }),
  log: row => ({
    kind: 'log',
    ...common(row),
    ...presentIds(row),
    serviceName: row.serviceName,
    severityNumber: row.severityNumber,
    ...(row.severityText && { severityText: row.severityText }),
    ...(row.eventName && { eventName: row.eventName }),
    body: row.bodyText,
  }),
  finding: row => ({
    kind: 'finding',
    ...common(row),
    ...presentIds(row),
    findingId: row.findingId,
    serviceName: row.serviceName,
    type: row.exceptionType,
    message: row.exceptionMessage,
  }),
  heartbeat: row => ({ kind: 'heartbeat', ...common(row), ...presentDevice(row) }),
  identity: row => ({
    kind: 'identity',
    ...common(row),
    identifier: row.identifierText,
    source: { type: row.sourceType, name: row.sourceName },
    ...(row.userName && { name: row.userName }),
    ...(row.userEmail && { email: row.userEmail }),
    ...presentDevice(row),
  }),
  replay: row => ({
    kind: 'replay',
    ...common(row),
    chunkId: row.chunkId,
    windowId: row.windowId,
    segmentId: row.segmentId,
    endsAt: rfc3339FromUnixMs(Number(row.lastEventMs)),
    eventCount: row.eventCount,
    hasFullSnapshot: row.hasFullSnapshot,
  }),
}

function common({ at, receivedCount, surfaceId }: TimelineRow) {
  return { at: rfc3339FromUnixNano(BigInt(at)), receivedCount: Number(receivedCount), surfaceId }
}

const isPresent = (id: string) => !/^0+$/.test(id)

function presentIds({ traceId, spanId }: { readonly traceId: string; readonly spanId: string }) {
  return { ...(isPresent(traceId) && { traceId }), ...(isPresent(spanId) && { spanId }) }
}

function presentDevice({ deviceId, visitorId }: { readonly deviceId: string; readonly visitorId: string }) {
  return { ...(deviceId && { deviceId }), ...(visitorId && { visitorId }) }
}
