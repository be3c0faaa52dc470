import type { ClickHouseClient } from '../../client.ts'
import { selectRows } from '../../select.ts'
import { POINTS_SETTINGS, type PointsFilter, pointsCondition } from './metric-points.ts'

/** Position of a metric in a list: the first 128 bytes of its name, then a hash of the whole name. */
interface MetricPosition {
  /** Hex. */
  readonly nameStart: string
  /** 32 hex digits. */
  readonly nameHash: string
}

/** A metric and its position. */
interface MetricNameRow extends MetricPosition {
  readonly name: string
}

/** Selects a page of metrics. */
interface MetricNamesPage {
  readonly filter: PointsFilter
  /** Text with which the names begin. */
  readonly prefix: string | undefined
  readonly after: MetricPosition | undefined
  readonly limit: number
}

/** Points whose names one read may look at. It reads two columns. */
export const NAMES_READ_MAX = 100_000_000

/** Returns the names of metrics with points, ordered by position. */
export function selectMetricNames(
  client: ClickHouseClient,
  { filter, prefix, after, limit }: MetricNamesPage,
  signal: AbortSignal,
): Promise<MetricNameRow[]> {
  const points = pointsCondition(filter)
  const conditions = [
    points.sql,
    ...(prefix === undefined ? [] : ['startsWith(metric_name, {prefix: String})']),
    // No later name is smaller than the beginning of the name before.
    ...(after === undefined ? [] : ['metric_name >= unhex({nameStart: String})']),
  ]
  const query = `
    SELECT name, lower(hex(substring(name, 1, 128))) AS nameStart, lower(hex(sipHash128(name))) AS nameHash
    FROM (
      SELECT CAST(metric_name, 'String') AS name FROM metric_points WHERE ${conditions.join(' AND ')} GROUP BY metric_name)
    ${after === undefined ? '' : 'WHERE (nameStart, nameHash) > ({nameStart: String}, {nameHash: String})'}
    ORDER BY nameStart, nameHash LIMIT {limit: UInt32}`
  return selectRows<MetricNameRow>(client, {
    query,
    params: { ...points.params, prefix, limit, ...after },
    signal,
    settings: { ...POINTS_SETTINGS, max_rows_to_read: String(NAMES_READ_MAX) },
  })
}
