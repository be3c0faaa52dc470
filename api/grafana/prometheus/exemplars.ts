import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { derivedMetricOf } from '../../../clickhouse/queries/services/derived-metrics.ts'
import { selectExemplars } from '../../../clickhouse/queries/services/select-derived.ts'
import { NAME_LABEL, selectorsOf } from '../../../promql/expression.ts'
import { labelsOf, nameOf, refuseExpression } from '../../../promql/load-samples.ts'
import { parsePromql } from '../../../promql/parse-promql.ts'
import { labelsText } from '../../../promql/vector.ts'
import { listExemplars, listExemplarsByForm } from '../../../schemas/http/grafana/prometheus.ts'
import { exemplarsParameters } from '../../../schemas/http/grafana/prometheus-schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import { inParameter, listRange, parametersOf } from './parameters.ts'
import {
  type PrometheusAnswer,
  type PrometheusDeps,
  type PrometheusRequest,
  prometheusRoute,
} from './prometheus-route.ts'

interface Deps extends PrometheusDeps {
  readonly clickhouse: ClickHouseClient
  readonly now: () => number
}

interface Exemplar {
  readonly labels: { readonly trace_id: string }
  readonly value: string
  /** Unix seconds. */
  readonly timestamp: number
}

/** Most exemplars of a response. Grafana shows about as many points. */
const EXEMPLARS_MAX = 1_000

/** Returns the routes that list exemplars (docs/api/other-tools.md#prometheus). Points that clients send have none. */
export function exemplarRoutes(deps: Deps): readonly Route[] {
  const exemplars = async ({ workspaceId, parameters, deadline }: PrometheusRequest): Promise<PrometheusAnswer> => {
    const { query, start, end } = parametersOf(exemplarsParameters, parameters)
    const selectors = inParameter('query', () => selectorsOf(parsePromql(query)))
    const filter = { workspaceId, ...listRange({ start, end }, deps.now()) }
    const series = new Map<string, { seriesLabels: Record<string, string>; exemplars: Exemplar[] }>()
    for (const selector of selectors) {
      const name = nameOf(selector)
      const metric = derivedMetricOf(name)
      if (metric?.slowest === undefined) continue
      const matchers = selector.matchers.filter(({ label }) => label !== NAME_LABEL && label !== 'le')
      const search = { filter, matchers, limit: EXEMPLARS_MAX }
      const read = selectExemplars(deps.clickhouse, { ...metric, slowest: metric.slowest }, search, deadline)
      for (const { labels, atMs, seconds, traceId } of await read.catch(refuseExpression)) {
        const seriesLabels = Object.fromEntries(labelsOf(name, labels))
        const key = labelsText(Object.entries(seriesLabels))
        const found = series.get(key) ?? { seriesLabels, exemplars: [] }
        series.set(key, found)
        found.exemplars.push({ labels: { trace_id: traceId }, value: String(seconds), timestamp: Number(atMs) / 1_000 })
      }
    }
    return { data: [...series.values()] }
  }
  return [prometheusRoute(deps, listExemplars, exemplars), prometheusRoute(deps, listExemplarsByForm, exemplars)]
}
