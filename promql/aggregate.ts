import type { AggregateExpression } from './expression.ts'
import { type EvaluationBudget, emptySeries, keyOf, type Labels, labelsBy, type Series } from './vector.ts'

/** A group of series, and where its values are put. */
interface Group {
  readonly labels: Labels
  readonly members: Series[]
}

/** Aggregates series into groups at each time. `parameters` has that of a quantile, or of the number of series to choose. */
export function aggregate(
  { operator, grouping, isWithout }: Pick<AggregateExpression, 'operator' | 'grouping' | 'isWithout'>,
  series: readonly Series[],
  parameters: Float64Array | undefined,
  count: number,
  budget: EvaluationBudget,
): readonly Series[] {
  const groups = new Map<string, Group>()
  for (const each of series) {
    const labels = labelsBy(each.labels, grouping, isWithout)
    const key = keyOf(labels, budget)
    const group = groups.get(key) ?? { labels, members: [] }
    group.members.push(each)
    groups.set(key, group)
  }
  budget.spend(series.length * count)
  return [...groups.values()].flatMap(group => {
    if (operator === 'topk' || operator === 'bottomk') {
      return chooseOf(group, operator === 'topk', parameters as Float64Array, count)
    }
    return [combine(group, operator, parameters, count)]
  })
}

function combine({ labels, members }: Group, operator: string, parameters: Float64Array | undefined, count: number) {
  const result = emptySeries(labels, count)
  for (let step = 0; step < count; step++) {
    const values: number[] = []
    for (const { values: all, has } of members) if (has[step] === 1) values.push(all[step] as number)
    if (values.length === 0) continue
    result.has[step] = 1
    result.values[step] = combined(operator, values, parameters?.[step] ?? Number.NaN)
  }
  return result
}

function combined(operator: string, values: readonly number[], parameter: number): number {
  switch (operator) {
    case 'sum':
      return sumOf(values)
    case 'avg':
      return sumOf(values) / values.length
    case 'count':
      return values.length
    case 'group':
      return 1
    case 'max':
      return values.reduce((most, value) => (value > most || Number.isNaN(most) ? value : most))
    case 'min':
      return values.reduce((least, value) => (value < least || Number.isNaN(least) ? value : least))
    case 'stdvar':
      return varianceOf(values)
    case 'stddev':
      return Math.sqrt(varianceOf(values))
    case 'quantile':
      return quantileOf(values, parameter)
    default:
      throw new TypeError(`no aggregation is called ${operator}`)
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

function varianceOf(values: readonly number[]): number {
  const mean = sumOf(values) / values.length
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
}

function quantileOf(values: readonly number[], quantile: number): number {
  if (Number.isNaN(quantile)) return Number.NaN
  if (quantile < 0) return Number.NEGATIVE_INFINITY
  if (quantile > 1) return Number.POSITIVE_INFINITY
  const sorted = values.toSorted(byValue)
  const rank = quantile * (sorted.length - 1)
  const lower = Math.max(0, Math.floor(rank))
  const upper = Math.min(sorted.length - 1, lower + 1)
  const weight = rank - Math.floor(rank)
  return (sorted[lower] as number) * (1 - weight) + (sorted[upper] as number) * weight
}

/** Orders numbers, NaN before all others. */
export function byValue(a: number, b: number): number {
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : -1
  return Number.isNaN(b) ? 1 : a - b
}

/** Returns the series of a group with the values that are among the largest, or the smallest, at their time. */
function chooseOf({ members }: Group, isLargest: boolean, parameters: Float64Array, count: number): Series[] {
  const chosen = members.map(member => ({ ...member, has: new Uint8Array(count) }))
  for (let step = 0; step < count; step++) {
    const limit = Math.trunc(parameters[step] as number)
    if (!(limit >= 1)) continue
    const present = chosen.filter((_, i) => members[i]?.has[step] === 1)
    const valueAt = ({ values }: Series) => values[step] as number
    // NaN is chosen last.
    present.sort((a, b) => {
      const [x, y] = [valueAt(a), valueAt(b)]
      if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y))
      return isLargest ? y - x : x - y
    })
    for (const series of present.slice(0, limit)) series.has[step] = 1
  }
  const kept = chosen.filter(({ has }) => has.includes(1))
  if (count > 1) return kept
  const order = (a: Series, b: Series) => byValue(a.values[0] as number, b.values[0] as number)
  return kept.sort((a, b) => (isLargest ? order(b, a) : order(a, b)))
}
