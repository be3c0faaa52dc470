import type { BoundCondition } from '../../select.ts'
import { type LabelMatcher, matchersCondition } from '../metrics/label-matchers.ts'
import { lineOfPeer } from './calls.ts'

/** A metric that is computed from what workers have counted, by the name that Grafana expects of Tempo. */
export interface DerivedMetric {
  /** The name without the suffix of its parts. */
  readonly name: string
  readonly type: 'counter' | 'histogram'
  readonly help: string
  /** `calls` are those of `callsWhere`. */
  readonly table: 'span_stats' | 'calls'
  /** Condition on groups of rows. */
  readonly having: string
  /** Labels, with the expression of each. */
  readonly labels: Readonly<Record<string, string>>
  /** Names of the metric as Prometheus shows it, with the expression of its value in a minute. */
  readonly parts: Readonly<Record<string, string>>
  /** Expression of the sorted map of durations by bucket, of a histogram. */
  readonly buckets?: string
  /** Expression of the longest duration and its trace, of a histogram. */
  readonly slowest?: string
}

/** Exponents of the upper bounds of buckets in nanoseconds: from 16 µs to 137 s. */
const BOUND_EXPONENTS = Array.from({ length: 24 }, (_, i) => 14 + i)
const boundText = (exponent: number) => String(2 ** exponent / 1e9)

/** Upper bounds of the buckets of derived histograms in seconds, as Prometheus writes them. */
export const DERIVED_BOUNDS: readonly string[] = [...BOUND_EXPONENTS.map(boundText), '+Inf']

/** Expression of the numbers of durations up to each of `DERIVED_BOUNDS`, from buckets of workers/span-stats/duration-bucket.ts. */
export function countsUpToBounds(buckets: string): string {
  const keys = [...BOUND_EXPONENTS.map(exponent => 32 * exponent + 1), 65_535]
  return `arrayMap(highest -> arraySum(arrayMap((bucket, number) -> if(bucket <= highest, number, 0), mapKeys(${buckets}), mapValues(${buckets}))), [${keys}])`
}

const named = (column: string, names: readonly string[]) =>
  `[${names.map(name => `'${name}'`).join(', ')}][${column} + 1]`
const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map(kind => `SPAN_KIND_${kind}`)
const STATUSES = ['UNSET', 'OK', 'ERROR'].map(status => `STATUS_CODE_${status}`)

const OF_SPANS = {
  table: 'span_stats',
  having: 'true',
  labels: {
    service: 'toString(service_name)',
    span_name: 'toString(operation)',
    span_kind: named('kind', KINDS),
    status_code: named('status_code', STATUSES),
  },
} as const

const PEER = `multiIf(${lineOfPeer('name')} != '', ${lineOfPeer('name')}, ${lineOfPeer('system')} != '', ${lineOfPeer('system')}, 'unknown')`
const KIND = lineOfPeer('kind')
const OF_EDGES = {
  table: 'calls',
  // Nothing is left of calls that were received.
  having: 'sum(calls.calls) > 0',
  labels: {
    client: "if(has_caller, caller, 'unknown')",
    server: `if(has_callee, callee, ${PEER})`,
    connection_type: `multiIf(is_message OR (NOT has_callee AND ${KIND} = 'queue'), 'messaging_system', NOT has_callee AND ${KIND} = 'database', 'database', has_caller AND has_callee, '', 'virtual_node')`,
  },
} as const

function histogram(name: string, count: string, sum: string): Pick<DerivedMetric, 'name' | 'type' | 'parts'> {
  return {
    name,
    type: 'histogram',
    parts: { [`${name}_bucket`]: count, [`${name}_count`]: count, [`${name}_sum`]: sum },
  }
}

function counter(name: string, value: string): Pick<DerivedMetric, 'name' | 'type' | 'parts'> {
  return { name, type: 'counter', parts: { [name]: value } }
}

const CALLS = 'sum(calls.calls)'
const SERVER_SUM = 'sum(if(has_callee, calls.duration_sum_nano, calls.caller_duration_sum_nano)) / 1e9'

/** Every derived metric. The time of a callee without spans is that of its caller, as Tempo has it. */
export const DERIVED_METRICS: readonly DerivedMetric[] = [
  {
    ...OF_SPANS,
    ...counter('traces_spanmetrics_calls_total', 'sum(span_stats.spans)'),
    help: 'Spans by service, name, kind and status.',
  },
  {
    ...OF_SPANS,
    ...histogram('traces_spanmetrics_latency', 'sum(span_stats.spans)', 'sum(duration_sum_nano) / 1e9'),
    ...{ buckets: 'sumMap(durations)', slowest: 'max(span_stats.slowest)' },
    help: 'Durations of spans in seconds.',
  },
  {
    ...OF_EDGES,
    ...counter('traces_service_graph_request_total', CALLS),
    help: 'Calls between two services.',
  },
  {
    ...OF_EDGES,
    ...counter('traces_service_graph_request_failed_total', 'sum(calls.errors)'),
    help: 'Calls between two services that failed.',
  },
  {
    ...OF_EDGES,
    ...histogram('traces_service_graph_request_server_seconds', CALLS, SERVER_SUM),
    buckets: 'sumMap(if(has_callee, calls.durations, calls.caller_durations))',
    slowest: 'max(calls.slowest)',
    help: 'Durations of calls as the callee saw them, in seconds.',
  },
  {
    ...OF_EDGES,
    ...histogram(
      'traces_service_graph_request_client_seconds',
      'sumIf(calls.calls, has_caller)',
      'sum(calls.caller_duration_sum_nano) / 1e9',
    ),
    buckets: 'sumMap(calls.caller_durations)',
    slowest: 'max(calls.slowest)',
    help: 'Durations of calls as the caller saw them, in seconds.',
  },
]

/** Names of the parts of the metrics of a table. */
export function partsOfTable(table: DerivedMetric['table']): readonly string[] {
  return DERIVED_METRICS.filter(metric => metric.table === table).flatMap(({ parts }) => Object.keys(parts))
}

/** Tables of derived metrics, with their labels. */
export const DERIVED_TABLES = [OF_SPANS, OF_EDGES] as const

const BY_PART = new Map(
  DERIVED_METRICS.flatMap(metric => Object.keys(metric.parts).map(part => [part, metric] as const)),
)

/** Returns the derived metric with a part of this name. */
export function derivedMetricOf(part: string): DerivedMetric | undefined {
  return BY_PART.get(part)
}

/** Returns the condition on these labels, given the expression of each. Labels that are not among them are empty. */
export function derivedCondition(
  labels: Readonly<Record<string, string>>,
  matchers: readonly LabelMatcher[],
  name: string,
): BoundCondition {
  const columnOf = (label: string) => (Object.hasOwn(labels, label) ? (labels[label] as string) : "''")
  return matchersCondition(matchers, columnOf, name)
}
