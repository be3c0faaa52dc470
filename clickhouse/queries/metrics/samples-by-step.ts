import type { Aggregation } from '../../../schemas/http/metrics.ts'

/** Conditions on points, and the labels by which they are grouped, as SQL. */
export interface PointSource {
  readonly where: string
  readonly labels: string
}

/** The value of a point of a gauge or a sum. */
export const NUMBER = "if(value_type = 'int', toFloat64(as_int), as_double)"
/** Condition that it has one which can be aggregated. */
export const HAS_NUMBER = `value_type != 'none' AND isFinite(${NUMBER})`

/** How the points of a series and step become one value, and then the values of all series of a group. */
const AGGREGATES: Partial<Record<Aggregation, readonly [ofSeries: string, ofGroup: string]>> = {
  average: [`avg(${NUMBER})`, 'avg(sample)'],
  last: [`argMax(${NUMBER}, time_unix_nano)`, 'argMax(sample, sampledAt)'],
  max: [`max(${NUMBER})`, 'max(sample)'],
  min: [`min(${NUMBER})`, 'min(sample)'],
  sum: [`argMax(${NUMBER}, time_unix_nano)`, 'sum(sample)'],
}

/** Returns the query of the values by labels and step of points that are values of their moment. */
export function samplesByStep({ aggregation }: { aggregation: Aggregation }, { where, labels }: PointSource): string {
  const aggregate = AGGREGATES[aggregation]
  if (aggregate === undefined) throw new TypeError(`a sample has no ${aggregation}`)
  const [ofSeries, ofGroup] = aggregate
  return `
    SELECT seriesLabels AS labels, CAST([], 'Array(Float64)') AS bounds, step, ${ofGroup} AS value
    FROM (
      SELECT any(${labels}) AS seriesLabels, ${ofSeries} AS sample, max(time_unix_nano) AS sampledAt,
             toUInt32(intDiv(time_unix_nano, {stepNano: UInt64}) - {firstStep: UInt64}) AS step
      FROM metric_points WHERE ${where} AND ${HAS_NUMBER}
      GROUP BY series_id, step)
    GROUP BY labels, step`
}
