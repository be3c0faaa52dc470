import { type EvaluationBudget, emptySeries, keyOf, labelsBy, type Series } from './vector.ts'

/** A bucket: how many observations are at most its bound. */
interface Bucket {
  readonly bound: number
  count: number
}

/** Returns the quantile of each histogram, whose buckets are series with the label `le` (promql/quantile.go, bucketQuantile). */
export function histogramQuantile(
  quantiles: Float64Array,
  series: readonly Series[],
  budget: EvaluationBudget,
): readonly Series[] {
  const groups = new Map<string, { readonly of: Series; readonly buckets: { bound: number; series: Series }[] }>()
  for (const each of series) {
    const bound = boundOf(each.labels.get('le'))
    if (bound === undefined) continue
    const labels = labelsBy(each.labels, ['le'], true)
    const key = keyOf(labels, budget)
    const group = groups.get(key) ?? { of: emptySeries(labels, quantiles.length), buckets: [] }
    group.buckets.push({ bound, series: each })
    groups.set(key, group)
  }
  return [...groups.values()].map(({ of, buckets }) => {
    budget.spend(quantiles.length * buckets.length)
    buckets.sort((a, b) => a.bound - b.bound)
    for (let step = 0; step < quantiles.length; step++) {
      const present = buckets.filter(bucket => bucket.series.has[step] === 1)
      if (present.length === 0) continue
      of.has[step] = 1
      const counts = present.map(bucket => ({ bound: bucket.bound, count: bucket.series.values[step] as number }))
      of.values[step] = quantileOf(quantiles[step] as number, counts)
    }
    return of
  })
}

function boundOf(le: string | undefined): number | undefined {
  if (le === undefined) return undefined
  if (/^\+?inf$/i.test(le)) return Number.POSITIVE_INFINITY
  const bound = Number(le)
  return le.trim() === '' || Number.isNaN(bound) ? undefined : bound
}

/** Returns a quantile of cumulative buckets, whose bounds ascend. */
function quantileOf(quantile: number, given: readonly Bucket[]): number {
  if (Number.isNaN(quantile)) return Number.NaN
  if (quantile < 0) return Number.NEGATIVE_INFINITY
  if (quantile > 1) return Number.POSITIVE_INFINITY
  const buckets = joined(given)
  const all = buckets.at(-1)
  const beforeLast = buckets.at(-2)
  if (all?.bound !== Number.POSITIVE_INFINITY || beforeLast === undefined || all.count === 0) return Number.NaN
  const rank = quantile * all.count
  let found = buckets.findIndex(({ count }) => count >= rank)
  if (found < 0) found = buckets.length - 1
  if (found === buckets.length - 1) return beforeLast.bound
  const bucket = buckets[found] as Bucket
  if (found === 0 && bucket.bound <= 0) return bucket.bound
  const below = buckets[found - 1] ?? { bound: 0, count: 0 }
  return below.bound + (bucket.bound - below.bound) * ((rank - below.count) / (bucket.count - below.count))
}

/** Joins buckets with the same bound, and makes their counts ascend. */
function joined(buckets: readonly Bucket[]): Bucket[] {
  const all: Bucket[] = []
  for (const { bound, count } of buckets) {
    const last = all.at(-1)
    if (last?.bound === bound) last.count += count
    else all.push({ bound, count })
  }
  for (const [i, bucket] of all.entries()) bucket.count = Math.max(bucket.count, all[i - 1]?.count ?? bucket.count)
  return all
}
