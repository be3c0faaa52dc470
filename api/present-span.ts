import type { SpanRow } from '../clickhouse/queries/span-row.ts'
import type { TraceSpan } from '../schemas/endpoints/read-trace.ts'
import { millisecondsBetween, rfc3339FromUnixNano } from './format-time.ts'

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

/** A stored row as a span of the answer (spec 2.9): absent values are left out. */
export function presentSpan(row: SpanRow, { isParentMissing, occurrenceCount }: SpanContext): TraceSpan {
  const parent = isParentMissing ? { danglingParentSpanId: row.parentSpanId } : { parentSpanId: row.parentSpanId }
  const { statusMessage, sessionId, httpRoute, httpStatusCode } = row
  return {
    spanId: row.spanId,
    ...(row.parentSpanId === NO_PARENT ? {} : parent),
    name: row.name,
    kind: KINDS[row.kind] ?? KINDS[0],
    serviceName: row.serviceName,
    startTimeUnixNano: row.startTimeUnixNano,
    endTimeUnixNano: row.endTimeUnixNano,
    durationMs: millisecondsBetween(BigInt(row.startTimeUnixNano), BigInt(row.endTimeUnixNano)),
    statusCode: STATUS_CODES[row.statusCode] ?? STATUS_CODES[0],
    ...(statusMessage === '' ? {} : { statusMessage }),
    ...(sessionId === '' ? {} : { sessionId }),
    ...(httpRoute === '' ? {} : { httpRoute }),
    ...(httpStatusCode > 0 && httpStatusCode <= HTTP_STATUS_CODE_MAX ? { httpStatusCode } : {}),
    occurrenceCount,
    timestamp: rfc3339FromUnixNano(BigInt(row.startTimeUnixNano)),
  }
}
