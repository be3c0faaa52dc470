import type { TraceTotalsRow } from '../../../clickhouse/queries/traces/search/select-trace-totals.ts'
import type { FoundTrace } from '../../../schemas/http/traces/search.ts'
import { millisecondsBetween } from '../../http/format-time.ts'
import { NO_SPAN } from '../spans/present-span.ts'

/** Returns a trace as a list shows it (docs/api/traces.md#traces). */
export function presentFoundTrace(row: TraceTotalsRow): FoundTrace {
  const [spanId, parentSpanId, name, serviceName] = row.first
  return {
    traceId: row.traceId,
    firstSpan: { spanId, ...(parentSpanId !== NO_SPAN && { parentSpanId }), name, serviceName },
    startedAtUnixNano: row.startUnixNano,
    endedAtUnixNano: row.endUnixNano,
    wallDurationMs: millisecondsBetween(BigInt(row.startUnixNano), BigInt(row.endUnixNano)),
    spanCount: Number(row.spanCount),
    errorCount: Number(row.errorCount),
    services: [...row.services],
    serviceCount: Number(row.serviceCount),
  }
}
