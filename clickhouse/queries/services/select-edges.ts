import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { durationQuantile } from './duration-quantiles.ts'
import { type RatesFilter, type RatesRow, ROWS_READ_MAX, ratesCondition } from './select-span-rates.ts'

/** Calls from one service to another, with the durations of the callee's spans. */
export interface EdgeRow extends RatesRow {
  /** Empty without `hasCaller`. */
  readonly caller: string
  /** Empty without `hasCallee`. */
  readonly callee: string
  readonly hasCaller: boolean
  readonly hasCallee: boolean
  readonly kind: string
  readonly system: string
  readonly peer: string
  /** The same of the caller's spans. */
  readonly callerDurationSum: string
  readonly callerP50: number
  readonly callerP95: number
  readonly callerP99: number
  readonly slowest: string
  /** 32 hexadecimal digits. */
  readonly slowestTraceId: string
}

const EDGE = 'caller, callee, has_caller, has_callee, kind, system, peer'
const quantiles = (buckets: string, names: readonly [string, string, string]) =>
  [0.5, 0.95, 0.99].map((level, i) => `${durationQuantile(buckets, level)} AS ${names[i]}`).join(', ')

/** Returns calls between services, those first of which there are most. With a service, those from and to it. */
export function selectEdges(
  client: ClickHouseClient,
  { serviceName, ...filter }: RatesFilter,
  limit: number,
  signal: AbortSignal,
): Promise<EdgeRow[]> {
  const { sql, params } = ratesCondition(filter)
  const ofService =
    serviceName === undefined
      ? ''
      : 'AND ((has_caller AND caller = {serviceName: String}) OR (has_callee AND callee = {serviceName: String}))'
  return selectRows<EdgeRow>(client, {
    query: `
      SELECT toString(caller) AS caller, toString(callee) AS callee, has_caller AS hasCaller, has_callee AS hasCallee,
             toString(kind) AS kind, toString(system) AS system, toString(peer) AS peer,
             count, errors, durationSum, ${quantiles('buckets', ['p50', 'p95', 'p99'])},
             callerDurationSum, ${quantiles('callerBuckets', ['callerP50', 'callerP95', 'callerP99'])},
             slowestCall.1 AS slowest, lower(hex(slowestCall.2)) AS slowestTraceId
      FROM (
        SELECT ${EDGE}, sum(service_edges.calls) AS count, sum(service_edges.errors) AS errors,
               sum(duration_sum_nano) AS durationSum, sumMap(durations) AS buckets,
               sum(caller_duration_sum_nano) AS callerDurationSum, sumMap(caller_durations) AS callerBuckets,
               max(service_edges.slowest) AS slowestCall
        FROM service_edges WHERE ${sql} ${ofService} GROUP BY ${EDGE}) AS edges
      ORDER BY count DESC, ${EDGE.replaceAll(/\w+/g, 'edges.$&')} LIMIT {limit: UInt32}`,
    params: { ...params, serviceName, limit },
    signal,
    settings: { max_rows_to_read: String(ROWS_READ_MAX) },
  })
}
