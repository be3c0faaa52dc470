import type { RatesFilter } from './select-span-rates.ts'

/**
 * Spans of clients and producers become calls with one side only after this time: the upkeep takes those out that were received,
 * two minutes after they arrived.
 */
const SENT_AFTER_MINUTES = 4

/** Columns of a call. `sent` are those of a row of `span_stats` in their place. */
const COLUMNS: readonly (readonly [name: string, received: string, sent: string])[] = [
  ['minute', 'minute', 'minute'],
  ['caller', 'toString(caller)', 'toString(service_name)'],
  ['callee', 'toString(callee)', "''"],
  ['has_caller', 'has_caller', 'true'],
  ['has_callee', 'has_callee', 'false'],
  ['is_message', 'is_message', 'false'],
  ['peer', 'toString(peer)', 'toString(peer)'],
  ['calls', 'service_edges.calls', 'toInt64(span_stats.spans)'],
  ['errors', 'service_edges.errors', 'if(status_code = 2, toInt64(span_stats.spans), 0)'],
  ['duration_sum_nano', 'service_edges.duration_sum_nano', 'toInt64(0)'],
  ['durations', 'service_edges.durations', "CAST(map(), 'Map(UInt16, Int64)')"],
  ['caller_duration_sum_nano', 'service_edges.caller_duration_sum_nano', 'toInt64(span_stats.duration_sum_nano)'],
  ['caller_durations', 'service_edges.caller_durations', "CAST(span_stats.durations, 'Map(UInt16, Int64)')"],
  ['slowest', 'service_edges.slowest', 'span_stats.slowest'],
]

/**
 * Returns a query of the calls whose rows meet a condition, in parts whose numbers add up: those that were received, and those of
 * clients and producers less what was received of them. Groups of which nothing is left have no more calls than 0.
 * `serviceName` chooses those from and to a service that is bound to it.
 */
export function callsWhere(condition: string, { serviceName }: Pick<RatesFilter, 'serviceName'> = {}): string {
  const columns = (index: 1 | 2) => COLUMNS.map(column => `${column[index]} AS ${column[0]}`).join(', ')
  const name = '{serviceName: String}'
  const received =
    serviceName === undefined ? '' : `AND ((has_caller AND caller = ${name}) OR (has_callee AND callee = ${name}))`
  const sent = serviceName === undefined ? '' : `AND service_name = ${name}`
  return `
    SELECT ${columns(1)} FROM service_edges WHERE ${condition} ${received}
    UNION ALL
    SELECT ${columns(2)} FROM span_stats
    WHERE ${condition} AND kind IN (3, 4) AND minute < now() - INTERVAL ${SENT_AFTER_MINUTES} MINUTE ${sent}`
}

/** Expression of a line of `peer`: its kind, its system or its name. */
export function lineOfPeer(line: 'kind' | 'system' | 'name'): string {
  return `splitByChar('\\n', peer)[${['kind', 'system', 'name'].indexOf(line) + 1}]`
}
