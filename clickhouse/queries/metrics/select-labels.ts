import type { ClickHouseSettings } from '@clickhouse/client'
import type { ClickHouseClient } from '../../client.ts'
import type { BoundCondition } from '../../select.ts'
import { selectRows } from '../../select.ts'
import { attributeText, keyPattern, unescaped } from '../attributes/attribute-text.ts'
import { KEYS } from '../attributes/packed-attributes.ts'
import {
  INSTANCE,
  type LabelMatcher,
  labelsCondition,
  labelsOf,
  type PackedAttributes,
  pointLabel,
  valueCondition,
} from './label-matchers.ts'
import { BUCKETS, POINTS_SETTINGS, type PointsFilter, pointsCondition } from './metric-points.ts'
import { NAMES_READ_MAX } from './select-metric-names.ts'

/** Selects series by their labels. */
export interface LabelSearch {
  readonly filter: PointsFilter
  /** Names of stored metrics, one of which a series must have. Undefined for all. */
  readonly storedNames: readonly string[] | undefined
  /** Conditions on the names that Prometheus shows, to which distributions have suffixes. */
  readonly names: readonly LabelMatcher[]
  readonly matchers: readonly LabelMatcher[]
  readonly limit: number
}

/** A series without its samples. */
export interface SeriesLabelsRow {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly surfaceId: string
  readonly instanceId: string
  /** Suffixes that select it, such as `_count`. Empty texts for gauges and sums. */
  readonly suffixes: readonly string[]
  /** Upper bounds of the buckets of a histogram. */
  readonly bounds: readonly string[]
}

const SUFFIXES = `
  multiIf(type IN ('gauge', 'sum'), [''], type = 'histogram', ['_bucket', '_count', '_sum'], ['_count', '_sum'])`

const SETTINGS: ClickHouseSettings = { ...POINTS_SETTINGS, max_rows_to_read: String(NAMES_READ_MAX) }

function sourceOf({ filter, storedNames, names, matchers }: LabelSearch): BoundCondition {
  const points = pointsCondition(filter)
  const labels = labelsCondition(matchers)
  const ofNames = names.map((matcher, i) => valueCondition('concat(metric_name, suffix)', matcher, `name${i}`))
  const selected =
    ofNames.length === 0
      ? SUFFIXES
      : `arrayFilter(suffix -> ${ofNames.map(({ sql }) => sql).join(' AND ')}, ${SUFFIXES})`
  return {
    sql: `
      FROM (SELECT *, explicit_bounds, ${selected} AS suffixes FROM metric_points
            WHERE ${points.sql} AND ${labels.sql}
                  ${storedNames === undefined ? '' : 'AND metric_name IN {storedNames: Array(String)}'}
                  AND notEmpty(suffixes))`,
    params: Object.assign({ storedNames }, points.params, labels.params, ...ofNames.map(({ params }) => params)),
  }
}

/** Keys of attributes. */
interface FoundKeys {
  readonly keys: readonly string[]
  readonly hasPoints: boolean
  readonly hasBuckets: boolean
}

/** Returns the keys of the attributes of points, and whether there are histograms. */
export async function selectLabelKeys(
  client: ClickHouseClient,
  search: LabelSearch,
  signal: AbortSignal,
): Promise<FoundKeys> {
  const { sql, params } = sourceOf(search)
  const [row] = await selectRows<{ keys: string[]; hasBuckets: number; hasPoints: number }>(client, {
    query: `SELECT arraySort(arrayMap(key -> ${unescaped('key')}, groupUniqArrayArray(${search.limit})(${KEYS}))) AS keys,
                   toUInt8(max(has(suffixes, '_bucket'))) AS hasBuckets, toUInt8(count() > 0) AS hasPoints
            ${sql}`,
    params,
    signal,
    settings: SETTINGS,
  })
  return { keys: row?.keys ?? [], hasBuckets: row?.hasBuckets === 1, hasPoints: row?.hasPoints === 1 }
}

/** Returns the values of a label, or the names of metrics if it is undefined. */
export async function selectLabelValues(
  client: ClickHouseClient,
  search: LabelSearch,
  label: string | undefined,
  signal: AbortSignal,
): Promise<string[]> {
  const { sql, params } = sourceOf(search)
  const values =
    label === undefined
      ? 'arrayJoin(arrayMap(suffix -> concat(metric_name, suffix), suffixes))'
      : label === 'le'
        ? `arrayJoin(if(has(suffixes, '_bucket'), arrayPushBack(${BUCKETS.boundTexts()}, '+Inf'), [${attributeText('{le: String}')}]))`
        : pointLabel(label, 'valuesOf')
  const rows = await selectRows<{ value: string }>(client, {
    query: `SELECT DISTINCT ${values} AS value ${sql} ORDER BY value LIMIT {limit: UInt32}`,
    params: { ...params, le: keyPattern('le'), valuesOf: label && keyPattern(label), limit: search.limit },
    signal,
    settings: SETTINGS,
  })
  return rows.map(({ value }) => value).filter(value => value !== '')
}

/** Returns series with their labels. */
export async function selectSeriesLabels(
  client: ClickHouseClient,
  search: LabelSearch,
  signal: AbortSignal,
): Promise<SeriesLabelsRow[]> {
  const { sql, params } = sourceOf(search)
  const bounds = BUCKETS.boundTexts(`arraySort(groupUniqArrayArray(${BUCKETS.bounds}))`)
  const rows = await selectRows<Omit<SeriesLabelsRow, 'attributes'> & { packed: PackedAttributes }>(client, {
    query: `
      SELECT CAST(metric_name, 'String') AS name, any((toString(attribute_keys), attribute_values)) AS packed,
             any(CAST(service_name, 'String')) AS serviceName, any(surface_id) AS surfaceId, any(${INSTANCE}) AS instanceId,
             any(suffixes) AS suffixes, ${bounds} AS bounds
      ${sql} GROUP BY metric_name, series_id ORDER BY metric_name, series_id LIMIT {limit: UInt32}`,
    params: { ...params, limit: search.limit },
    signal,
    settings: SETTINGS,
  })
  return rows.map(({ packed, ...row }) => ({ ...row, attributes: labelsOf(packed) }))
}
