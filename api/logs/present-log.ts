import type { LogRow } from '../../clickhouse/queries/logs/select-logs.ts'
import { type LogRecord, SEVERITIES } from '../../schemas/http/logs.ts'
import { rfc3339FromUnixMs, rfc3339FromUnixNano } from '../http/format-time.ts'
import { presentAttributes, presentScope } from '../http/present-attributes.ts'

const ABSENT_ID = /^0+$/

/** Returns a log record as a response shows it (docs/api/logs.md#logs). */
export function presentLog(row: LogRow, isCut: boolean): LogRecord {
  return {
    timestamp: rfc3339FromUnixNano(BigInt(row.nanos)),
    timeUnixNano: row.timeUnixNano,
    observedTimeUnixNano: row.observedTimeUnixNano,
    receivedAt: rfc3339FromUnixMs(Number(row.receivedMs)),
    surfaceId: row.surfaceId,
    serviceName: row.serviceName,
    serviceVersion: row.serviceVersion,
    severity: SEVERITIES[Math.min(Math.ceil(row.severityNumber / 4), SEVERITIES.length - 1)] ?? SEVERITIES[0],
    severityNumber: row.severityNumber,
    severityText: row.severityText,
    body: row.bodyText,
    bodyType: row.bodyType,
    ...(row.eventName !== '' && { eventName: row.eventName }),
    ...(!ABSENT_ID.test(row.traceId) && { traceId: row.traceId }),
    ...(!ABSENT_ID.test(row.spanId) && { spanId: row.spanId }),
    ...(row.sessionId !== '' && { sessionId: row.sessionId }),
    flags: row.flags,
    attributes: presentAttributes(row.attributeColumns),
    droppedAttributesCount: row.droppedAttributesCount,
    ...presentScope(row),
    ...(isCut && { isCut }),
  }
}
