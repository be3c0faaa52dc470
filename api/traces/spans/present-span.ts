import type { AttributeColumns } from '../../../clickhouse/queries/traces/select-span-details.ts'
import { HttpStatusColumn } from '../../../clickhouse/tables/http-status-column.ts'
import type { SpanDetails } from '../../../schemas/http/traces/schemas.ts'
import { millisecondsBetween, rfc3339FromUnixMs, rfc3339FromUnixNano } from '../../http/format-time.ts'
import type { LoadedSpan } from './load-spans.ts'

/** OTLP's SpanKind and StatusCode by their numbers. A number that OTLP does not define is shown as the first. */
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const
const STATUSES = ['UNSET', 'OK', 'ERROR'] as const
const HTTP_STATUS_CODE_MAX = 32_767
/** Each id of a finding has this many characters, and they follow each other (migration 0020). */
const FINDING_ID = /.{30}/g
const NO_SPAN = '0000000000000000'

/** Returns a span as a response shows it (docs/contract.md#span-details). */
export function presentSpan({ row, occurrenceCount }: LoadedSpan): SpanDetails {
  const [start, end] = [BigInt(row.startTimeUnixNano), BigInt(row.endTimeUnixNano)]
  const httpStatusCode = row.httpStatusCode === HttpStatusColumn.zero ? 0 : row.httpStatusCode
  const hasHttpStatus = row.httpStatusCode !== HttpStatusColumn.none && httpStatusCode <= HTTP_STATUS_CODE_MAX
  return {
    spanId: row.spanId,
    ...(row.parentSpanId !== NO_SPAN && { parentSpanId: row.parentSpanId }),
    name: row.name,
    kind: KINDS[row.kind] ?? KINDS[0],
    serviceName: row.serviceName,
    startTimeUnixNano: row.startTimeUnixNano,
    endTimeUnixNano: row.endTimeUnixNano,
    durationMs: millisecondsBetween(start, end),
    statusCode: STATUSES[row.statusCode] ?? STATUSES[0],
    ...(row.statusMessage !== '' && { statusMessage: row.statusMessage }),
    ...(row.sessionId !== '' && { sessionId: row.sessionId }),
    ...(row.httpRoute !== '' && { httpRoute: row.httpRoute }),
    ...(hasHttpStatus && { httpStatusCode }),
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
    findingIds: row.findingIds.match(FINDING_ID) ?? [],
    resource: {
      attributes: jsonObject(row.resource),
      droppedAttributesCount: row.resourceDroppedAttributesCount,
      schemaUrl: row.resourceSchemaUrl,
    },
    scope: {
      name: row.scopeName,
      version: row.scopeVersion,
      attributes: jsonObject(row.scopeAttributes),
      droppedAttributesCount: row.scopeDroppedAttributesCount,
      schemaUrl: row.scopeSchemaUrl,
    },
  }
}

function presentAttributes([keys, values, types]: AttributeColumns) {
  return keys.map((key, i) => ({ key, type: types[i] ?? 'empty', value: values[i] ?? '' }))
}

/** Parses attributes that are stored as one JSON object. An empty text is what a column has for rows without it. */
function jsonObject(json: string): SpanDetails['resource']['attributes'] {
  return json === '' ? {} : JSON.parse(json)
}
