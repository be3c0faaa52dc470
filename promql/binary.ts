import { type BinaryExpression, COMPARISONS, NAME_LABEL, SET_OPERATORS, type VectorMatching } from './expression.ts'
import { PromqlError } from './promql-error.ts'
import {
  type EvaluationBudget,
  emptySeries,
  joinSameLabels,
  keyOf,
  type Labels,
  labelsBy,
  type Series,
  type Value,
  withoutName,
} from './vector.ts'

/** Returns the value of an operation. */
export function binary(expression: BinaryExpression, left: Value, right: Value, budget: EvaluationBudget): Value {
  const { operator, isBool } = expression
  if (left.type === 'scalar' && right.type === 'scalar') {
    budget.spend(left.values.length)
    return {
      type: 'scalar',
      values: left.values.map((value, step) => operate(operator, value, right.values[step] as number)),
    }
  }
  if (left.type === 'vector' && right.type === 'vector') {
    const sides = { left: left.series, right: right.series }
    const series = SET_OPERATORS.includes(operator)
      ? combineSets(expression, sides, budget)
      : matchVectors(expression, sides, budget)
    return { type: 'vector', series }
  }
  const isComparison = COMPARISONS.includes(operator)
  if (left.type === 'vector' && right.type === 'scalar') {
    const compute = (value: number, step: number) => operate(operator, value, right.values[step] as number)
    return { type: 'vector', series: withScalar(left.series, compute, { isComparison, isBool }, budget) }
  }
  if (left.type === 'scalar' && right.type === 'vector') {
    const compute = (value: number, step: number) => operate(operator, left.values[step] as number, value)
    return { type: 'vector', series: withScalar(right.series, compute, { isComparison, isBool }, budget) }
  }
  throw new TypeError('an operand is not a number')
}

/** Returns each series with its values computed, or only with those for which the comparison is true. */
function withScalar(
  series: readonly Series[],
  compute: (value: number, step: number) => number,
  { isComparison, isBool }: { isComparison: boolean; isBool: boolean },
  budget: EvaluationBudget,
): readonly Series[] {
  const isFilter = isComparison && !isBool
  const changed = series.map(({ labels, values, has }) => {
    budget.spend(values.length)
    const computed = values.map(compute)
    if (!isFilter) return { labels: withoutName(labels), values: computed, has }
    return { labels, values, has: has.map((present, step) => (present === 1 && computed[step] === 1 ? 1 : 0)) }
  })
  return isFilter ? changed : joinSameLabels(changed, budget)
}

/** Returns the value of an operator for two numbers. A comparison is 1 or 0. */
function operate(operator: string, a: number, b: number): number {
  switch (operator) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    case '/':
      return a / b
    case '%':
      return a % b
    case '^':
      return a ** b
    case '==':
      return Number(a === b)
    case '!=':
      return Number(a !== b)
    case '>':
      return Number(a > b)
    case '<':
      return Number(a < b)
    case '>=':
      return Number(a >= b)
    case '<=':
      return Number(a <= b)
    default:
      throw new TypeError(`no operator is called ${operator}`)
  }
}

/** The operands of an operation. */
interface Sides {
  readonly left: readonly Series[]
  readonly right: readonly Series[]
}

/** Returns the labels by which a series is matched. */
function signatureOf({ labels }: Series, { labels: names, isOn }: VectorMatching, budget: EvaluationBudget): string {
  return keyOf(labelsBy(labels, names, !isOn), budget)
}

function bySignature(
  series: readonly Series[],
  matching: VectorMatching,
  budget: EvaluationBudget,
): Map<string, Series[]> {
  const groups = new Map<string, Series[]>()
  for (const each of series) {
    const signature = signatureOf(each, matching, budget)
    const group = groups.get(signature)
    if (group === undefined) groups.set(signature, [each])
    else group.push(each)
  }
  return groups
}

/** Computes `and`, `or` and `unless` at each time. */
function combineSets(
  { operator, matching }: BinaryExpression,
  { left, right }: Sides,
  budget: EvaluationBudget,
): Series[] {
  const others = bySignature(operator === 'or' ? left : right, matching, budget)
  const keep = (series: Series, isKept: (isMatched: boolean) => boolean): Series => {
    const matched = others.get(signatureOf(series, matching, budget)) ?? []
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
function matchVectors(expression: BinaryExpression, { left, right }: Sides, budget: EvaluationBudget): Series[] {
  const { matching } = expression
  const isRightMany = matching.many === 'right'
  const [many, one] = isRightMany ? [right, left] : [left, right]
  const ones = bySignature(one, matching, budget)
  const results = new Map<string, Series>()
  /** Times at which a series of the many side has been matched, where only one may be. */
  const taken = new Map<string, Uint8Array>()
  const asked = new Set<string>()
  for (const series of many) {
    const signature = signatureOf(series, matching, budget)
    asked.add(signature)
    for (const other of ones.get(signature) ?? []) {
      budget.spend(series.has.length)
      const labels = resultLabels(expression, series.labels, other.labels)
      const key = keyOf(labels, budget)
      const result = results.get(key) ?? emptySeries(labels, series.has.length)
      results.set(key, result)
      const alone =
        matching.many === undefined ? (taken.get(signature) ?? new Uint8Array(series.has.length)) : undefined
      if (alone !== undefined) taken.set(signature, alone)
      const pair = isRightMany ? ([other, series] as const) : ([series, other] as const)
      computePair(expression, pair, result, alone)
    }
  }
  refuseDuplicates(ones, asked)
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
function refuseDuplicates(ones: ReadonlyMap<string, readonly Series[]>, asked: ReadonlySet<string>): void {
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
