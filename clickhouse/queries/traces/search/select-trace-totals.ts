import type { ClickHouseClient } from '../../../client.ts'
import { selectRows } from '../../../select.ts'
import { OF_TRACES, TRACE_READ_SETTINGS } from '../span-row.ts'

/** What a list shows of a trace. Ids are hex, numbers of 64 bits are decimal digits. */
export interface TraceTotalsRow {
  readonly traceId: string
  readonly startUnixNano: string
  /** A span that ends before it starts ends at its start. */
  readonly endUnixNano: string
  /** Spans, each counted once however often it was received. Large counts are estimates. */
  readonly spanCount: string
  readonly errorCount: string
  /** The first of them in alphabetical order. */
  readonly services: readonly string[]
  readonly serviceCount: string
  /** The first span without a parent, else the first one. The parent of a root is zeros; absent values are empty or 0. */
  readonly first: readonly [
    spanId: string,
    parentSpanId: string,
    name: string,
    serviceName: string,
    httpRoute: string,
    httpStatusCode: number,
  ]
}

/** Most services that a list names of a trace. */
const SERVICES_MAX = 20
const NAME_CHARACTERS = 256
const NO_SPAN = "toFixedString('', 8)"

/**
 * Precision of `uniqCombined64`: it counts exactly up to 2^17 values and then estimates in 1 MB. A client that never changes its
 * trace id fills a trace with millions of spans, of which an exact count would exceed the memory of a query.
 */
const PRECISION = 20

/** Returns the totals of traces in no order. All of their spans are read. */
export function selectTraceTotals(
  client: ClickHouseClient,
  { workspaceId, traceIds }: { readonly workspaceId: string; readonly traceIds: readonly string[] },
  signal: AbortSignal,
): Promise<TraceTotalsRow[]> {
  const first = `(lower(hex(span_id)), lower(hex(parent_span_id)), leftUTF8(name, ${NAME_CHARACTERS}),
                  leftUTF8(toString(service_name), ${NAME_CHARACTERS}), leftUTF8(toString(http_route), ${NAME_CHARACTERS}),
                  http_status_code)`
  return selectRows<TraceTotalsRow>(client, {
    query: `
      SELECT lower(hex(trace_id)) AS traceId, min(start_time_unix_nano) AS startUnixNano,
             max(greatest(start_time_unix_nano, end_time_unix_nano)) AS endUnixNano,
             uniqCombined64(${PRECISION})(span_id) AS spanCount, uniqCombined64If(${PRECISION})(span_id, status_code = 2) AS errorCount,
             arraySlice(arraySort(groupUniqArray(1000)(leftUTF8(toString(service_name), ${NAME_CHARACTERS}))), 1, ${SERVICES_MAX}) AS services,
             uniqCombined64(${PRECISION})(service_name) AS serviceCount,
             argMin(${first}, (parent_span_id != ${NO_SPAN}, start_time_unix_nano, span_id)) AS first
      FROM spans WHERE ${OF_TRACES} GROUP BY trace_id`,
    params: { workspaceId, traceIds },
    signal,
    settings: TRACE_READ_SETTINGS,
  })
}
