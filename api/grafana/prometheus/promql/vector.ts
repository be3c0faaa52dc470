import { NAME_LABEL } from './expression.ts'
import { PromqlError } from './promql-error.ts'

/** Labels of a series by name. None is empty. */
export type Labels = ReadonlyMap<string, string>

/** A series with a value, or none, at each time of the query. */
export interface Series {
  readonly labels: Labels
  readonly values: Float64Array
  /** 1 at each time that has a value. */
  readonly has: Uint8Array
}

/** Times at which a query is evaluated. */
export interface TimeGrid {
  readonly startMs: number
  readonly stepMs: number
  readonly count: number
}

/** The value of an expression. */
export type Value =
  | { readonly type: 'scalar'; readonly values: Float64Array }
  | { readonly type: 'string'; readonly text: string }
  | { readonly type: 'vector'; readonly series: readonly Series[] }

/** Values that one query may compute, those of its parts included: 45 MB, because all of them may be in memory at once. */
const COMPUTED_VALUES_MAX = 5_000_000

/** Counts what a query computes, and refuses it over the limit, so that no query keeps the only thread. */
export class EvaluationBudget {
  #left = COMPUTED_VALUES_MAX

  /** Counts values before they are computed. */
  spend(values: number): void {
    this.#left -= values
    if (this.#left < 0) {
      throw new PromqlError(
        'query processing would load too many samples into memory in query execution: request fewer series, a longer step or a shorter range',
        'execution',
      )
    }
  }
}

/** Returns a series without values. */
export function emptySeries(labels: Labels, count: number): Series {
  return { labels, values: new Float64Array(count), has: new Uint8Array(count) }
}

/** Returns a text that is the same for equal labels only. */
export function keyOf(labels: Iterable<readonly [string, string]>): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}

/** Returns the labels that are named, or those that are not. The name of the metric is kept only if it is named. */
export function labelsBy(labels: Labels, names: readonly string[], isWithout: boolean): Labels {
  const kept = isWithout
    ? [...labels].filter(([name]) => name !== NAME_LABEL && !names.includes(name))
    : [...labels].filter(([name]) => names.includes(name))
  return new Map(kept)
}

/** Returns the labels without the name of the metric. */
export function withoutName(labels: Labels): Labels {
  return labels.has(NAME_LABEL) ? labelsBy(labels, [], true) : labels
}

/** Joins series with the same labels. Refuses those that have values at the same time. */
export function joinSameLabels(series: readonly Series[]): readonly Series[] {
  const byKey = new Map<string, Series>()
  for (const each of series) {
    const key = keyOf(each.labels)
    const known = byKey.get(key)
    if (known === undefined) {
      byKey.set(key, each)
      continue
    }
    const joined = { ...known, values: known.values.slice(), has: known.has.slice() }
    for (let step = 0; step < joined.has.length; step++) {
      if (each.has[step] === 0) continue
      if (joined.has[step] === 1) {
        throw new PromqlError('vector cannot contain metrics with the same labelset', 'execution')
      }
      joined.has[step] = 1
      joined.values[step] = each.values[step] as number
    }
    byKey.set(key, joined)
  }
  return [...byKey.values()]
}

/** Returns the same series with other values, and without the name of the metric. */
export function mapValues(
  series: readonly Series[],
  budget: EvaluationBudget,
  change: (value: number, step: number) => number,
): readonly Series[] {
  const changed = series.map(({ labels, values, has }) => {
    budget.spend(values.length)
    return { labels: withoutName(labels), values: values.map(change), has }
  })
  return joinSameLabels(changed)
}
