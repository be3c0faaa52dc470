import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { INSTANCE_LABEL, type LabelMatcher } from '../../../clickhouse/queries/metrics/label-matchers.ts'
import {
  type LabelSearch,
  type SeriesLabelsRow,
  selectLabelKeys,
  selectLabelValues,
  selectSeriesLabels,
} from '../../../clickhouse/queries/metrics/select-labels.ts'
import { selectMetricDetails } from '../../../clickhouse/queries/metrics/select-metric-kinds.ts'
import { selectMetricNames } from '../../../clickhouse/queries/metrics/select-metric-names.ts'
import { DERIVED_BOUNDS, DERIVED_METRICS } from '../../../clickhouse/queries/services/derived-metrics.ts'
import { selectDerivedLabels } from '../../../clickhouse/queries/services/select-derived.ts'
import { NAME_LABEL } from '../../../promql/expression.ts'
import { labelsOf, refuseExpression, storedNames } from '../../../promql/load-samples.ts'
import { parseSelector } from '../../../promql/parse-promql.ts'
import { labelsText } from '../../../promql/vector.ts'
import {
  ANSWERS,
  listLabels,
  listLabelsByForm,
  listLabelValues,
  listMetadata,
  listSeries,
  listSeriesByForm,
  readBuildInfo,
} from '../../../schemas/http/grafana/prometheus.ts'
import {
  labelsParameters,
  metadataParameters,
  seriesParameters,
} from '../../../schemas/http/grafana/prometheus-schemas.ts'
import type { Route } from '../../../shared/http/route.ts'
import { isSampled } from '../../metrics/kinds.ts'
import { inParameter, listLimit, listRange, parametersOf } from './parameters.ts'
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

/** Labels that are no attributes of points. */
const OWN_LABELS = ['service.name', 'surface.id', INSTANCE_LABEL]

/** Returns the routes that list labels, series and metadata. */
export function labelRoutes(deps: Deps): readonly Route[] {
  const { clickhouse } = deps

  const labels = async (request: PrometheusRequest): Promise<PrometheusAnswer> => {
    const { searches, limit } = searchesOf(deps, request, labelsParameters)
    const found = await eachOf(searches, search => selectLabelKeys(clickhouse, search, request.deadline))
    const isAny = found.some(({ keys, hasPoints }) => hasPoints || keys.length > 0)
    const hasBuckets = found.some(each => each.hasBuckets)
    const own = isAny ? [NAME_LABEL, ...OWN_LABELS, ...(hasBuckets ? ['le'] : [])] : []
    const derived = (await derivedSeries(clickhouse, searches, request.deadline)).flatMap(Object.keys)
    const all = new Set([...own, ...found.flatMap(({ keys }) => keys), ...derived])
    return cut([...all].filter(label => label !== '').sort(), limit)
  }

  const values = async (request: PrometheusRequest): Promise<PrometheusAnswer> => {
    const { searches, limit } = searchesOf(deps, request, labelsParameters)
    const label = unescapedLabel(request.param('label'))
    const column = label === NAME_LABEL ? undefined : label
    const found = await eachOf(searches, search => selectLabelValues(clickhouse, search, column, request.deadline))
    const derived = await derivedSeries(clickhouse, searches, request.deadline)
    const all = new Set([...found.flat(), ...derived.flatMap(series => series[label] ?? [])])
    return cut([...all].sort(), limit)
  }

  const series = async (request: PrometheusRequest): Promise<PrometheusAnswer> => {
    const { searches, limit } = searchesOf(deps, request, seriesParameters)
    const found = await eachOf(searches, async search => {
      const rows = await selectSeriesLabels(clickhouse, search, request.deadline)
      return rows.flatMap(row => presentSeries(row, search.ofBuckets))
    })
    const all = [...found.flat(), ...(await derivedSeries(clickhouse, searches, request.deadline))]
    const byKey = new Map(all.map(each => [labelsText(Object.entries(each)), each]))
    return cut([...byKey.values()], limit)
  }

  return [
    prometheusRoute(deps, listLabels, labels),
    prometheusRoute(deps, listLabelsByForm, labels),
    prometheusRoute(deps, listLabelValues, values),
    prometheusRoute(deps, listSeries, series),
    prometheusRoute(deps, listSeriesByForm, series),
    prometheusRoute(deps, listMetadata, request => readMetadata(deps, request)),
    prometheusRoute(deps, readBuildInfo, () => ({ data: ANSWERS.buildInfo.data })),
  ]
}

async function readMetadata(
  { clickhouse, now }: Deps,
  { workspaceId, parameters, deadline }: PrometheusRequest,
): Promise<PrometheusAnswer> {
  const { metric, limit, start, end } = parametersOf(metadataParameters, parameters)
  const filter = {
    workspaceId,
    surfaceId: undefined,
    serviceName: undefined,
    ...listRange({ start, end }, now()),
  }
  const page = { filter, prefix: metric, after: undefined, limit: metric === undefined ? listLimit(limit) : 1 }
  const names = (await selectMetricNames(clickhouse, page, deadline)).map(({ name }) => name)
  const wanted = metric === undefined ? names : names.filter(name => name === metric)
  const rows = wanted.length === 0 ? [] : await selectMetricDetails(clickhouse, filter, wanted, deadline)
  const derived = DERIVED_METRICS.filter(({ name }) => metric === undefined || name === metric)
  const data = Object.fromEntries([...wanted, ...derived.map(({ name }) => name)].map(name => [name, [] as unknown[]]))
  for (const { name, type, help } of derived) data[name]?.push({ type, help, unit: type === 'histogram' ? 's' : '' })
  for (const row of rows) {
    const type = row.type === 'sum' ? (isSampled(row) ? 'gauge' : 'counter') : row.type
    const shown = type === 'exponential_histogram' ? 'histogram' : type
    data[row.name]?.push({ type: shown, help: row.description, unit: row.unit })
  }
  return { data }
}

interface Search extends LabelSearch {
  /** Conditions on the bounds of buckets, which are no attributes. */
  readonly ofBuckets: readonly LabelMatcher[]
}

/** Returns a search for each selector of a request, or one for all series. */
function searchesOf(
  { now }: Deps,
  { workspaceId, parameters }: PrometheusRequest,
  schema: typeof labelsParameters | typeof seriesParameters,
): { searches: Search[]; limit: number } {
  const { start, end, limit: requested, 'match[]': selectors = [] } = parametersOf(schema, parameters)
  const limit = listLimit(requested)
  const filter = { workspaceId, surfaceId: undefined, serviceName: undefined, ...listRange({ start, end }, now()) }
  const parsed = selectors.map(text => inParameter('match[]', () => parseSelector(text).matchers))
  const searches = (parsed.length === 0 ? [[]] : parsed).map((matchers: readonly LabelMatcher[]) => {
    const names = matchers.filter(({ label }) => label === NAME_LABEL)
    const name = names.find(({ operator }) => operator === '=')
    return {
      ...{ filter, names, limit: limit + 1 },
      storedNames: name && storedNames(name.value).map(stored => stored.name),
      matchers: matchers.filter(({ label }) => label !== NAME_LABEL && label !== 'le'),
      ofBuckets: matchers.filter(({ label }) => label === 'le'),
    }
  })
  return { searches, limit }
}

async function eachOf<T>(searches: readonly Search[], select: (search: Search) => Promise<T>): Promise<T[]> {
  const found: T[] = []
  for (const search of searches) found.push(await select(search).catch(refuseExpression))
  return found
}

/** Returns the series of derived metrics. */
async function derivedSeries(
  clickhouse: ClickHouseClient,
  searches: readonly Search[],
  signal: AbortSignal,
): Promise<Record<string, string>[]> {
  const found = await eachOf(searches, async search => {
    const rows = await selectDerivedLabels(clickhouse, search, signal)
    return rows.flatMap(({ names, labels }) =>
      names.flatMap(name => {
        const present = Object.fromEntries(labelsOf(name, labels))
        return name.endsWith('_bucket') ? ofEachBound(present, DERIVED_BOUNDS, search.ofBuckets) : [present]
      }),
    )
  })
  return found.flat()
}

/** Returns the labels of a series by each of its names. A histogram has a series for each of its buckets. */
function presentSeries(row: SeriesLabelsRow, ofBuckets: readonly LabelMatcher[]): Record<string, string>[] {
  const { name, attributes, serviceName, surfaceId, instanceId, suffixes, bounds } = row
  const own = { 'service.name': serviceName, 'surface.id': surfaceId, [INSTANCE_LABEL]: instanceId }
  return suffixes.flatMap(suffix => {
    const present = Object.fromEntries(labelsOf(`${name}${suffix}`, { ...attributes, ...own }))
    return suffix === '_bucket' ? ofEachBound(present, [...bounds, '+Inf'], ofBuckets) : [present]
  })
}

/** Returns the labels of each bucket of a series whose bound is requested. */
function ofEachBound(
  labels: Record<string, string>,
  bounds: readonly string[],
  ofBuckets: readonly LabelMatcher[],
): Record<string, string>[] {
  const isShown = (le: string) =>
    ofBuckets.every(({ operator, value }) => (operator === '=' ? le === value : operator !== '!=' || le !== value))
  return bounds.filter(isShown).map(le => ({ ...labels, le }))
}

function cut(data: readonly unknown[], limit: number): PrometheusAnswer {
  return data.length <= limit ? { data } : { data: data.slice(0, limit), warnings: ['results truncated due to limit'] }
}

/** Returns a label that a client has escaped because of characters that Prometheus 2 did not allow. */
function unescapedLabel(label: string): string {
  if (!label.startsWith('U__')) return label
  return label.slice(3).replaceAll(/__|_([0-9a-fA-F]{1,6})_/g, (all, hex: string | undefined) => {
    const code = hex === undefined ? 0x5f : Number.parseInt(hex, 16)
    return code <= 0x10_ffff ? String.fromCodePoint(code) : all
  })
}
