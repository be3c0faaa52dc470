import {
  DESCRIPTION_CHARACTERS,
  LABEL_KEYS_MAX,
  type MetricKind,
  UNIT_CHARACTERS,
} from '../../../schemas/http/metrics.ts'
import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { unescaped } from '../attributes/attribute-text.ts'
import { KEYS } from '../attributes/packed-attributes.ts'
import { POINTS_SETTINGS, type PointsFilter, pointsCondition } from './metric-points.ts'

/** A kind of the points of a metric, as stored. */
export interface MetricKindRow extends Pick<MetricKind, 'type' | 'unit'> {
  readonly name: string
  readonly temporality: NonNullable<MetricKind['temporality']>
  readonly isMonotonic: boolean
  /** Time of the newest point, Unix ns, decimal. */
  readonly lastNano: string
}

/** A kind of the points of a metric, with what a list shows of them. */
export interface MetricDetailsRow extends MetricKindRow {
  readonly description: string
  readonly labels: readonly string[]
}

/** Most kinds of one metric. */
const KINDS_MAX = 10

/** Texts are made of the groups, because making them of each point takes longer than reading it. */
const COLUMNS = `
  CAST(metric_name, 'String') AS name, toString(type) AS typeName, leftUTF8(unit, ${UNIT_CHARACTERS}) AS unitText,
  toString(aggregation_temporality) AS temporality, is_monotonic AS isMonotonic, max(time_unix_nano) AS lastNano`

const DETAILS = `
  , leftUTF8(argMax(description, time_unix_nano), ${DESCRIPTION_CHARACTERS}) AS descriptionText,
  arraySort(arrayMap(key -> ${unescaped('key')}, groupUniqArrayArray(${LABEL_KEYS_MAX})(${KEYS}))) AS labels`

interface Row extends Omit<MetricDetailsRow, 'type' | 'unit' | 'description'> {
  readonly typeName: MetricKind['type']
  readonly unitText: string
  readonly descriptionText: string
}

/** Returns the kinds of these metrics, at most ten of each, the one with the newest point first. */
export async function selectMetricKinds(
  client: ClickHouseClient,
  filter: PointsFilter,
  names: readonly string[],
  signal: AbortSignal,
): Promise<MetricKindRow[]> {
  return (await selectKinds(client, filter, names, '', signal)).map(fromRow)
}

/** Returns the same with descriptions and labels. */
export async function selectMetricDetails(
  client: ClickHouseClient,
  filter: PointsFilter,
  names: readonly string[],
  signal: AbortSignal,
): Promise<MetricDetailsRow[]> {
  return (await selectKinds(client, filter, names, DETAILS, signal)).map(fromRow)
}

function selectKinds(
  client: ClickHouseClient,
  filter: PointsFilter,
  names: readonly string[],
  details: string,
  signal: AbortSignal,
): Promise<Row[]> {
  const points = pointsCondition(filter)
  const query = `
    SELECT ${COLUMNS} ${details} FROM metric_points
    WHERE ${points.sql} AND metric_name IN {names: Array(String)}
    GROUP BY metric_name, type, unitText, aggregation_temporality, is_monotonic
    ORDER BY lastNano DESC, typeName, unitText, temporality, isMonotonic LIMIT ${KINDS_MAX} BY name`
  return selectRows<Row>(client, {
    query,
    params: { ...points.params, names },
    signal,
    settings: POINTS_SETTINGS,
  })
}

/** Columns have other names in the query, because ClickHouse would take those of the table for them. */
function fromRow({ typeName, unitText, descriptionText, ...row }: Row): MetricDetailsRow {
  return { ...row, type: typeName, unit: unitText, description: descriptionText }
}
