import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { type Expression, selectorsOf, typeOf } from '../../../promql/expression.ts'
import { LOOKBACK_MS } from '../../../promql/over-time.ts'
import { parsePromql } from '../../../promql/parse-promql.ts'
import { PromqlError, TOO_MANY_SAMPLES } from '../../../promql/promql-error.ts'
import { parseSeriesQuery } from '../../../promql/query-series.ts'
import {
  queryInstant,
  queryInstantByForm,
  queryRange,
  queryRangeByForm,
} from '../../../schemas/http/grafana/prometheus.ts'
import { instantQueryParameters, rangeQueryParameters } from '../../../schemas/http/grafana/prometheus-schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import { isMemoryError } from '../../../shared/runtime/errors.ts'
import type { ReadThreads } from '../threads/read-threads.ts'
import type { EvaluatedQuery } from './evaluate-query.ts'
import { gridOf, inParameter, parametersOf } from './parameters.ts'
import { type PrometheusDeps, type PrometheusRequest, prometheusRoute } from './prometheus-route.ts'

interface Deps extends PrometheusDeps {
  readonly clickhouse: ClickHouseClient
  readonly threads: Pick<ReadThreads, 'run'>
  readonly now: () => number
}

/** Returns the routes that evaluate queries of PromQL (docs/api/other-tools.md#prometheus). */
export function queryRoutes(deps: Deps): readonly Route[] {
  const instant = async (request: PrometheusRequest): Promise<Uint8Array> => {
    const { workspaceId } = request
    const { query, time = deps.now() } = parametersOf(instantQueryParameters, request.parameters)
    const expression = inParameter('query', () => parsePromql(query))
    if (typeOf(expression) === 'range') {
      throw new PromqlError(
        'invalid parameter "query": a range vector as the result is not supported: docs/grafana.md lists what is',
      )
    }
    // There is one time, so that any step will do. Longer ones divide the samples into fewer segments.
    const grid = { startMs: time, stepMs: stepOf(expression), count: 1 }
    return evaluated(deps, { workspaceId, expression, grid, isInstant: true }, request.deadline)
  }
  const range = async (request: PrometheusRequest): Promise<Uint8Array> => {
    const { workspaceId } = request
    const { query, ...times } = parametersOf(rangeQueryParameters, request.parameters)
    const grid = gridOf(times)
    const expression = inParameter('query', () => parseSeriesQuery(query))
    return evaluated(deps, { workspaceId, expression, grid, isInstant: false }, request.deadline)
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
  { clickhouse, threads }: Deps,
  query: EvaluatedQuery,
  signal: AbortSignal,
): Promise<Uint8Array> {
  try {
    return (await threads.run('evaluateQuery', query, { clickhouse, signal })) as Uint8Array
  } catch (error) {
    throw isMemoryError(error) ? new PromqlError(TOO_MANY_SAMPLES, 'execution') : error
  }
}
