import { type BinaryExpression, COMPARISONS, NAME_LABEL, type VectorMatching } from './expression.ts'
import { operate } from './operate.ts'
import { PromqlError } from './promql-error.ts'
import { type Budget, emptySeries, keyOf, type Labels, labelsBy, type Series } from './vector.ts'

/** The operands of an operation. */
interface Sides {
  readonly left: readonly Series[]
  readonly right: readonly Series[]
}

/** Returns the labels by which a series is matched. */
function signatureOf({ labels }: Series, { labels: names, isOn }: VectorMatching): string {
  return keyOf(labelsBy(labels, names, !isOn))
}

function bySignature(series: readonly Series[], matching: VectorMatching): Map<string, Series[]> {
  const groups = new Map<string, Series[]>()
  for (const each of series) {
    const signature = signatureOf(each, matching)
    const group = groups.get(signature)
    if (group === undefined) groups.set(signature, [each])
    else group.push(each)
  }
  return groups
}

/** Computes `and`, `or` and `unless` at each time. */
export function combineSets(
  { operator, matching }: BinaryExpression,
  { left, right }: Sides,
  budget: Budget,
): Series[] {
  const others = bySignature(operator === 'or' ? left : right, matching)
  const keep = (series: Series, isKept: (isMatched: boolean) => boolean): Series => {
    const matched = others.get(signatureOf(series, matching)) ?? []
    budget.spend(series.has.length * (1 + matched.length))
    const has = series.has.map((present, step) =>
      present === 1 && isKept(matched.some(other => other.has[step] === 1)) ? 1 : 0,
    )
    return { ...series, has }
  }
  if (operator === 'or') return [...left, ...right.map(series => keep(series, isMatched => !isMatched))]
  return left.map(series => keep(series, isMatched => isMatched === (operator === 'and')))
}

/** Computes an operation for each pair of series that match at each time. */
export function matchVectors(expression: BinaryExpression, { left, right }: Sides, budget: Budget): Series[] {
  const { matching } = expression
  const isRightMany = matching.many === 'right'
  const [many, one] = isRightMany ? [right, left] : [left, right]
  const ones = bySignature(one, matching)
  const results = new Map<string, Series>()
  /** Times at which a series of the many side has been matched, where only one may be. */
  const taken = new Map<string, Uint8Array>()
  for (const series of many) {
    const signature = signatureOf(series, matching)
    for (const other of ones.get(signature) ?? []) {
      budget.spend(series.has.length)
      const labels = resultLabels(expression, series.labels, other.labels)
      const key = keyOf(labels)
      const result = results.get(key) ?? emptySeries(labels, series.has.length)
      results.set(key, result)
      const alone =
        matching.many === undefined ? (taken.get(signature) ?? new Uint8Array(series.has.length)) : undefined
      if (alone !== undefined) taken.set(signature, alone)
      const pair = isRightMany ? ([other, series] as const) : ([series, other] as const)
      computePair(expression, pair, result, alone)
    }
  }
  refuseDuplicates(ones, many, matching)
  return [...results.values()].filter(({ has }) => has.includes(1))
}

function computePair(
  { operator, isBool }: BinaryExpression,
  [left, right]: readonly [Series, Series],
  result: Series,
  taken: Uint8Array | undefined,
): void {
  const isFilter = COMPARISONS.includes(operator) && !isBool
  for (let step = 0; step < result.has.length; step++) {
    if (left.has[step] === 0 || right.has[step] === 0) continue
    const value = operate(operator, left.values[step] as number, right.values[step] as number)
    if (taken?.[step] === 1)
      throw ambiguous('many-to-many matching not allowed: matching labels must be unique on one side')
    if (taken !== undefined) taken[step] = 1
    if (isFilter && value === 0) continue
    if (result.has[step] === 1)
      throw ambiguous('multiple matches for labels: grouping labels must ensure unique matches')
    result.has[step] = 1
    result.values[step] = isFilter ? (left.values[step] as number) : value
  }
}

/** Refuses series of the one side that match the same series and have values at the same time. */
function refuseDuplicates(
  ones: ReadonlyMap<string, readonly Series[]>,
  many: readonly Series[],
  matching: VectorMatching,
): void {
  const asked = new Set(many.map(series => signatureOf(series, matching)))
  for (const [signature, [first, ...others]] of ones) {
    if (first === undefined || others.length === 0 || !asked.has(signature)) continue
    const has = first.has.slice()
    for (const other of others) {
      for (let step = 0; step < has.length; step++) {
        if (other.has[step] === 0) continue
        if (has[step] === 1) {
          throw ambiguous(
            `found duplicate series for the match group ${signature} on the one side of the operation: many-to-many matching not allowed: matching labels must be unique on one side`,
          )
        }
        has[step] = 1
      }
    }
  }
}

function ambiguous(message: string): PromqlError {
  return new PromqlError(message, 'execution')
}

/** Returns the labels of a result (promql/engine.go, resultMetric). */
function resultLabels({ operator, isBool, matching }: BinaryExpression, many: Labels, one: Labels): Labels {
  const { labels: names, isOn, include } = matching
  const keepsName = COMPARISONS.includes(operator) && !isBool
  const labels = new Map(many)
  if (!keepsName) labels.delete(NAME_LABEL)
  if (matching.many === undefined) {
    for (const name of many.keys()) {
      const isMatched = names.includes(name)
      if (isOn ? !isMatched : isMatched) labels.delete(name)
    }
  }
  for (const name of include) {
    const value = one.get(name)
    if (value === undefined) labels.delete(name)
    else labels.set(name, value)
  }
  return labels
}
