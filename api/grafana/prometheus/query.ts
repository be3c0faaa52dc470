import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  queryInstant,
  queryInstantByForm,
  queryRange,
  queryRangeByForm,
} from '../../../schemas/http/grafana/prometheus.ts'
import {
  instantQueryParameters,
  RESPONSE_VALUES_MAX,
  rangeQueryParameters,
} from '../../../schemas/http/grafana/prometheus-schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import { loadSamples, selectorKey } from './load-samples.ts'
import { gridOf, inParameter, parametersOf } from './parameters.ts'
import {
  type PrometheusAnswer,
  type PrometheusDeps,
  type PrometheusRequest,
  prometheusRoute,
} from './prometheus-route.ts'
import { evaluate } from './promql/evaluate.ts'
import { type Expression, selectorsOf, typeOf } from './promql/expression.ts'
import { LOOKBACK_MS } from './promql/over-time.ts'
import { parsePromql } from './promql/parse-promql.ts'
import { PromqlError } from './promql/promql-error.ts'
import type { Series, TimeGrid, Value } from './promql/vector.ts'

interface Deps extends PrometheusDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
}

/** Returns the routes that evaluate queries of PromQL (docs/api/other-tools.md#prometheus). */
export function queryRoutes(deps: Deps): readonly Route[] {
  const instant = async (request: PrometheusRequest): Promise<PrometheusAnswer> => {
    const { query, time = deps.now() } = parametersOf(instantQueryParameters, request.parameters)
    const expression = inParameter('query', () => parsePromql(query))
    if (typeOf(expression) === 'range') {
      throw new PromqlError(
        'invalid parameter "query": a range vector as the result is not supported: docs/grafana.md lists what is',
      )
    }
    // There is one time, so that any step will do. Longer ones divide the samples into fewer segments.
    const grid = { startMs: time, stepMs: stepOf(expression), count: 1 }
    return { data: presentInstant(await evaluated(deps, request, expression, grid), time) }
  }
  const range = async (request: PrometheusRequest): Promise<PrometheusAnswer> => {
    const { query, ...times } = parametersOf(rangeQueryParameters, request.parameters)
    const grid = gridOf(times)
    const expression = inParameter('query', () => parsePromql(query))
    const type = typeOf(expression)
    if (type !== 'scalar' && type !== 'vector') {
      throw new PromqlError(
        `invalid parameter "query": invalid expression type "${type === 'range' ? 'range vector' : type}" for range query, must be Scalar or instant Vector`,
      )
    }
    return { data: presentRange(await evaluated(deps, request, expression, grid), grid) }
  }
  return [
    prometheusRoute(deps, queryInstant, instant),
    prometheusRoute(deps, queryInstantByForm, instant),
    prometheusRoute(deps, queryRange, range),
    prometheusRoute(deps, queryRangeByForm, range),
  ]
}

function stepOf(expression: Expression): number {
  return Math.max(LOOKBACK_MS, ...selectorsOf(expression).map(({ rangeMs = 0 }) => rangeMs))
}

async function evaluated(
  { clickhouse }: Deps,
  { workspaceId, deadline }: PrometheusRequest,
  expression: Expression,
  grid: TimeGrid,
): Promise<Value> {
  const source = { clickhouse, workspaceId, grid, signal: deadline }
  const samples = await loadSamples(source, selectorsOf(expression))
  return evaluate(expression, { grid, samplesOf: selector => samples.get(selectorKey(selector)) ?? [] })
}

function presentInstant(value: Value, timeMs: number): unknown {
  const sampleOf = (number: number) => [timeMs / 1_000, numberText(number)]
  switch (value.type) {
    case 'string':
      return { resultType: 'string', result: [timeMs / 1_000, value.text] }
    case 'scalar':
      return { resultType: 'scalar', result: sampleOf(value.values[0] as number) }
    case 'vector': {
      const present = value.series.filter(({ has }) => has[0] === 1)
      return {
        resultType: 'vector',
        result: present.map(({ labels, values }) => ({
          metric: Object.fromEntries(labels),
          value: sampleOf(values[0] as number),
        })),
      }
    }
  }
}

function presentRange(value: Value, { startMs, stepMs, count }: TimeGrid): unknown {
  const everywhere = () => new Uint8Array(count).fill(1)
  const series: readonly Series[] =
    value.type === 'vector'
      ? value.series
      : value.type === 'scalar'
        ? [{ labels: new Map(), values: value.values, has: everywhere() }]
        : []
  if (series.length * count > RESPONSE_VALUES_MAX) {
    const values = series.reduce((sum, { has }) => sum + has.reduce((all, present) => all + present, 0), 0)
    if (values > RESPONSE_VALUES_MAX) {
      throw new PromqlError(
        `the result has ${values} values, of which there may be ${RESPONSE_VALUES_MAX}: request fewer series or a longer step`,
        'execution',
      )
    }
  }
  const result = series.map(({ labels, values, has }) => {
    const samples: [number, string][] = []
    for (let step = 0; step < count; step++) {
      if (has[step] === 1) samples.push([(startMs + step * stepMs) / 1_000, numberText(values[step] as number)])
    }
    return { metric: Object.fromEntries(labels), values: samples }
  })
  return { resultType: 'matrix', result }
}

/** Returns a number as Prometheus writes it. */
function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}
