import { MIB } from '../schemas/units.ts'
import { NAME_LABEL } from './expression.ts'
import { PromqlError, TOO_MANY_SAMPLES } from './promql-error.ts'

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

/**
 * Characters of labels that one query may compare: the labels of 5,000 series with 2 kB each three times. It takes a quarter of a
 * second, and all of them may be in memory at once.
 */
const LABEL_CHARACTERS_MAX = 32 * MIB

/** Counts what a query computes, and refuses it over the limit, so that none takes seconds. */
export class EvaluationBudget {
  #left = COMPUTED_VALUES_MAX
  #charactersLeft = LABEL_CHARACTERS_MAX

  /** Counts values before they are computed. */
  spend(values: number): void {
    this.#left -= values
    if (this.#left < 0) throw new PromqlError(TOO_MANY_SAMPLES, 'execution')
  }

  /** Counts characters of labels that were compared. */
  spendLabels(characters: number): void {
    this.#charactersLeft -= characters
    if (this.#charactersLeft < 0) throw new PromqlError(TOO_MANY_SAMPLES, 'execution')
  }
}

/** Returns a series without values. */
export function emptySeries(labels: Labels, count: number): Series {
  return { labels, values: new Float64Array(count), has: new Uint8Array(count) }
}

/** Returns a text that is the same for equal labels only. */
export function labelsText(labels: Iterable<readonly [string, string]>): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}

/** The texts of labels that most functions leave as they are. */
const KEYS = new WeakMap<Labels, string>()

/** Returns the same of labels that are compared in a query. Those that it has seen before cost nothing. */
export function keyOf(labels: Labels, budget: EvaluationBudget): string {
  const known = KEYS.get(labels)
  if (known !== undefined) return known
  const key = labelsText(labels)
  budget.spendLabels(key.length)
  KEYS.set(labels, key)
  return key
}

/** Returns the labels that are named, or those that are not. The name of the metric is kept only if it is named. */
export function labelsBy(labels: Labels, names: readonly string[], isWithout: boolean): Labels {
  const kept = isWithout
    ? [...labels].filter(([name]) => name !== NAME_LABEL && !names.includes(name))
    : [...labels].filter(([name]) => names.includes(name))
  return new Map(kept)
}

/** Labels without the name of the metric. Each use of a selector in a query has the same. */
const NAMELESS = new WeakMap<Labels, Labels>()

/** Returns the labels without the name of the metric. */
export function withoutName(labels: Labels): Labels {
  if (!labels.has(NAME_LABEL)) return labels
  const nameless = NAMELESS.get(labels) ?? labelsBy(labels, [], true)
  NAMELESS.set(labels, nameless)
  return nameless
}

/** Joins series with the same labels. Refuses those that have values at the same time. */
export function joinSameLabels(series: readonly Series[], budget: EvaluationBudget): readonly Series[] {
  const byKey = new Map<string, Series>()
  for (const each of series) {
    const key = keyOf(each.labels, budget)
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
  return joinSameLabels(changed, budget)
}
