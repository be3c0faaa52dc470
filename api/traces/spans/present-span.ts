import { HttpStatusColumn } from '../../../clickhouse/tables/http-status-column.ts'
import {
  HTTP_STATUS_CODE_MAX,
  SPAN_KINDS,
  SPAN_STATUSES,
  type SpanDetails,
} from '../../../schemas/http/traces/schemas.ts'
import { millisecondsBetween, rfc3339FromUnixMs, rfc3339FromUnixNano } from '../../http/format-time.ts'
import { presentAttributes, presentScope } from '../../http/present-attributes.ts'
import type { LoadedSpan } from './load-spans.ts'

/** The id of the parent of a root span. */
export const NO_SPAN = '0000000000000000'

/** Returns a span as a response shows it, without its findings (docs/api/traces.md#span-details). */
export function presentSpan({ row, occurrenceCount }: LoadedSpan): Omit<SpanDetails, 'findingIds'> {
  const [start, end] = [BigInt(row.startTimeUnixNano), BigInt(row.endTimeUnixNano)]
  const httpStatusCode = shownHttpStatus(row.httpStatusCode)
  return {
    spanId: row.spanId,
    ...(row.parentSpanId !== NO_SPAN && { parentSpanId: row.parentSpanId }),
    name: row.name,
    kind: SPAN_KINDS[row.kind] ?? SPAN_KINDS[0],
    serviceName: row.serviceName,
    startTimeUnixNano: row.startTimeUnixNano,
    endTimeUnixNano: row.endTimeUnixNano,
    durationMs: millisecondsBetween(start, end),
    statusCode: SPAN_STATUSES[row.statusCode] ?? SPAN_STATUSES[0],
    ...(row.statusMessage !== '' && { statusMessage: row.statusMessage }),
    ...(row.sessionId !== '' && { sessionId: row.sessionId }),
    ...(row.httpRoute !== '' && { httpRoute: row.httpRoute }),
    ...(httpStatusCode !== undefined && { httpStatusCode }),
    occurrenceCount,
    timestamp: rfc3339FromUnixNano(start),
    surfaceId: row.surfaceId,
    receivedAt: rfc3339FromUnixMs(Number(row.receivedAtMs)),
    traceState: row.traceState,
    flags: row.flags,
    attributes: presentAttributes(row.attributeColumns),
    droppedAttributesCount: row.droppedAttributesCount,
    events: row.eventColumns.map(([timeUnixNano, name, attributes, droppedAttributesCount]) => ({
      ...{ timeUnixNano, name, attributes: presentAttributes(attributes), droppedAttributesCount },
    })),
    droppedEventsCount: row.droppedEventsCount,
    links: row.linkColumns.map(([traceId, spanId, traceState, flags, attributes, droppedAttributesCount]) => ({
      ...{ traceId, spanId, traceState, flags, attributes: presentAttributes(attributes), droppedAttributesCount },
    })),
    droppedLinksCount: row.droppedLinksCount,
    ...presentScope(row),
  }
}

/** Returns the status of HTTP that a response shows for a stored one, or undefined if it shows none. */
export function shownHttpStatus(stored: number): number | undefined {
  if (stored === HttpStatusColumn.zero) return 0
  return stored !== HttpStatusColumn.none && stored <= HTTP_STATUS_CODE_MAX ? stored : undefined
}
