import type { ClickHouseSettings } from '@clickhouse/client'
import { MINUTE_MS } from '../../../schemas/units.ts'
import type { ClickHouseClient } from '../../client.ts'
import { type BoundCondition, selectRows } from '../../select.ts'
import type { LabelMatcher } from '../metrics/label-matchers.ts'
import { type SampleSearch, type SampleSeriesRow, seriesBySegments } from '../metrics/select-samples.ts'
import { callsWhere } from './calls.ts'
import {
  countsUpToBounds,
  DERIVED_BOUNDS,
  DERIVED_TABLES,
  type DerivedMetric,
  derivedCondition,
  partsOfTable,
} from './derived-metrics.ts'
import { ROWS_READ_MAX } from './select-span-rates.ts'

/** Label of the name of a metric. */
const NAME_LABEL = '__name__'

/** Selects series of a derived metric in a range of Unix ns, the end exclusive. */
interface DerivedSearch {
  readonly filter: { readonly workspaceId: string; readonly fromNano: bigint; readonly toNano: bigint }
  readonly matchers: readonly LabelMatcher[]
  readonly limit: number
}

/** A derived metric, and the name of one of its parts. */
interface DerivedPart {
  readonly metric: DerivedMetric
  readonly part: string
}

/** An exemplar of a series: the longest span of a minute. */
interface ExemplarRow {
  readonly labels: Readonly<Record<string, string>>
  readonly atMs: string
  readonly seconds: number
  /** 32 hexadecimal digits. */
  readonly traceId: string
}

const SETTINGS: ClickHouseSettings = {
  max_rows_to_read: String(ROWS_READ_MAX),
  // Tuples are arrays.
  output_format_json_named_tuples_as_objects: 0,
}

/** When the value of a minute is a sample: at its last millisecond, because a window of time does not contain its start. */
const AT_MS = `toInt64(toUnixTimestamp(minute)) * 1000 + ${MINUTE_MS - 1}`

/** Returns the rows of a search, as the end of a query. Samples are at whole milliseconds. */
function sourceOf(
  metric: Pick<DerivedMetric, 'table' | 'labels'>,
  { filter, matchers }: Omit<DerivedSearch, 'limit'>,
): BoundCondition {
  const labels = derivedCondition(metric.labels, matchers, 'label')
  const firstMinute = (nano: bigint) => Math.ceil((Number(nano / 1_000_000n) - MINUTE_MS + 1) / MINUTE_MS) * 60
  const ofTime = `workspace_id = {workspaceId: String}
    AND received_at >= toStartOfDay(fromUnixTimestamp({fromSeconds: Int64}), 'UTC')
    AND minute >= fromUnixTimestamp({fromSeconds: Int64}) AND minute < fromUnixTimestamp({toSeconds: Int64})`
  return {
    sql:
      metric.table === 'calls'
        ? `FROM (${callsWhere(ofTime)}) AS calls WHERE ${labels.sql}`
        : `FROM span_stats WHERE ${ofTime} AND ${labels.sql}`,
    params: {
      workspaceId: filter.workspaceId,
      fromSeconds: Math.max(firstMinute(filter.fromNano), 0),
      toSeconds: Math.max(firstMinute(filter.toNano), 0),
      ...labels.params,
    },
  }
}

const labelsMap = ({ labels }: Pick<DerivedMetric, 'labels'>) =>
  `map(${Object.entries(labels)
    .map(([label, column]) => `'${label}', ${column}`)
    .join(', ')})`

/** Returns the series of a part of a derived metric, with a sample a minute. Each counts since the one before. */
export async function selectDerivedSamples(
  client: ClickHouseClient,
  { metric, part }: DerivedPart,
  { filter, matchers, grid, onlyLast, limit }: SampleSearch,
  signal: AbortSignal,
): Promise<SampleSeriesRow[]> {
  const isBucket = part.endsWith('_bucket') && metric.buckets !== undefined
  const isOfBound = ({ label }: LabelMatcher) => isBucket && label === 'le'
  const { sql, params } = sourceOf(metric, { filter, matchers: matchers.filter(matcher => !isOfBound(matcher)) })
  const bounds = derivedCondition({ le: 'le' }, matchers.filter(isOfBound), 'bound')
  const ofMinutes = (value: string) =>
    `SELECT ${labelsMap(metric)} AS series, ${AT_MS} AS atMs, ${value} ${sql} GROUP BY series, atMs HAVING ${metric.having}`
  const points = isBucket
    ? `SELECT series, le, series AS labelsOfPoint, atMs, toFloat64(upTo) AS sample
       FROM (${ofMinutes(`${metric.buckets} AS buckets`)})
       ARRAY JOIN ${countsUpToBounds('buckets')} AS upTo, [${DERIVED_BOUNDS.map(bound => `'${bound}'`).join(', ')}] AS le
       WHERE ${bounds.sql}`
    : `SELECT series, '' AS le, series AS labelsOfPoint, atMs, sample FROM (${ofMinutes(`toFloat64(${metric.parts[part]}) AS sample`)})`
  const rows = await selectRows<
    Omit<SampleSeriesRow, 'labels' | 'isDelta'> & { packed: Readonly<Record<string, string>> }
  >(client, {
    query: seriesBySegments(points, { onlyLast }, "''"),
    params: { ...params, ...bounds.params, limit, ...grid },
    signal,
    settings: SETTINGS,
  })
  return rows.map(({ packed, ...row }) => ({ ...row, labels: packed, isDelta: true }))
}

/** Labels of series, without the bounds of buckets, and the names of the derived metrics that have them. */
interface DerivedLabelsRow {
  readonly labels: Readonly<Record<string, string>>
  readonly names: readonly string[]
}

/** Returns the labels of the series of derived metrics whose names match. */
export async function selectDerivedLabels(
  client: ClickHouseClient,
  search: DerivedSearch & { readonly names: readonly LabelMatcher[] },
  signal: AbortSignal,
): Promise<DerivedLabelsRow[]> {
  const ofName = derivedCondition({ [NAME_LABEL]: 'name' }, search.names, 'name')
  const found: DerivedLabelsRow[] = []
  for (const source of DERIVED_TABLES) {
    const { sql, params } = sourceOf(source, search)
    const names = partsOfTable(source.table).map(name => `'${name}'`)
    const rows = await selectRows<DerivedLabelsRow>(client, {
      query: `
        SELECT ${labelsMap(source)} AS labels, arrayFilter(name -> ${ofName.sql}, [${names.join(', ')}]) AS names ${sql} AND notEmpty(names)
        GROUP BY labels HAVING ${source.having} ORDER BY labels LIMIT {limit: UInt32}`,
      params: { ...params, ...ofName.params, limit: search.limit },
      signal,
      settings: SETTINGS,
    })
    found.push(...rows)
  }
  return found
}

/** Returns the longest span of each minute and series of a derived histogram, the latest first. */
export function selectExemplars(
  client: ClickHouseClient,
  metric: DerivedMetric & { readonly slowest: string },
  search: DerivedSearch,
  signal: AbortSignal,
): Promise<ExemplarRow[]> {
  const { sql, params } = sourceOf(metric, search)
  return selectRows<ExemplarRow>(client, {
    query: `
      SELECT labels, atMs, longest.1 / 1e9 AS seconds, lower(hex(longest.2)) AS traceId
      FROM (SELECT ${labelsMap(metric)} AS labels, ${AT_MS} AS atMs, ${metric.slowest} AS longest ${sql} GROUP BY labels, atMs HAVING ${metric.having})
      ORDER BY atMs DESC, labels LIMIT {limit: UInt32}`,
    params: { ...params, limit: search.limit },
    signal,
    settings: SETTINGS,
  })
}
