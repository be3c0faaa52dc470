import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { callsWhere, lineOfPeer } from './calls.ts'
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
  readonly peerName: string
  /** The same of the caller's spans. */
  readonly callerDurationSum: string
  readonly callerP50: number
  readonly callerP95: number
  readonly callerP99: number
  readonly slowest: string
  /** 32 hexadecimal digits. */
  readonly slowestTraceId: string
}

const EDGE = 'caller, callee, has_caller, has_callee, is_message, peer'
const quantiles = (buckets: string, names: readonly [string, string, string]) =>
  [0.5, 0.95, 0.99].map((level, i) => `${durationQuantile(buckets, level)} AS ${names[i]}`).join(', ')
/** Sums of durations by bucket, of which those that were taken out are none. */
const sumOfBuckets = (column: string) => `mapFilter((bucket, number) -> number > 0, sumMap(calls.${column}))`

/** Returns calls between services, those first of which there are most. With a service, those from and to it. */
export function selectEdges(
  client: ClickHouseClient,
  filter: RatesFilter,
  limit: number,
  signal: AbortSignal,
): Promise<EdgeRow[]> {
  const { serviceName, ...ofAll } = filter
  const { sql, params } = ratesCondition(ofAll)
  return selectRows<EdgeRow>(client, {
    query: `
      SELECT caller, callee, has_caller AS hasCaller, has_callee AS hasCallee,
             multiIf(is_message, 'message', has_callee OR peer = '', 'request', ${lineOfPeer('kind')}) AS kind,
             ${lineOfPeer('system')} AS system, ${lineOfPeer('name')} AS peerName,
             count, errors, durationSum, ${quantiles('buckets', ['p50', 'p95', 'p99'])},
             callerDurationSum, ${quantiles('callerBuckets', ['callerP50', 'callerP95', 'callerP99'])},
             slowestCall.1 AS slowest, lower(hex(slowestCall.2)) AS slowestTraceId
      FROM (
        SELECT ${EDGE}, sum(calls.calls) AS count, greatest(sum(calls.errors), 0) AS errors,
               sum(calls.duration_sum_nano) AS durationSum, ${sumOfBuckets('durations')} AS buckets,
               sum(calls.caller_duration_sum_nano) AS callerDurationSum, ${sumOfBuckets('caller_durations')} AS callerBuckets,
               max(calls.slowest) AS slowestCall
        FROM (${callsWhere(sql, filter)}) AS calls GROUP BY ${EDGE} HAVING count > 0) AS edges
      ORDER BY count DESC, ${EDGE.replaceAll(/\w+/g, 'edges.$&')} LIMIT {limit: UInt32}`,
    params: { ...params, serviceName, limit },
    signal,
    settings: { max_rows_to_read: String(ROWS_READ_MAX) },
  })
}
