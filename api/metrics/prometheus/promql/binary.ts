import { type BinaryExpression, COMPARISONS, SET_OPERATORS } from './expression.ts'
import { combineSets, matchVectors } from './match-vectors.ts'
import { operate } from './operate.ts'
import { type Budget, joinSameLabels, type Series, type Value, withoutName } from './vector.ts'

/** Returns the value of an operation. */
export function binary(expression: BinaryExpression, left: Value, right: Value, budget: Budget): Value {
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
  budget: Budget,
): readonly Series[] {
  const isFilter = isComparison && !isBool
  const changed = series.map(({ labels, values, has }) => {
    budget.spend(values.length)
    const computed = values.map(compute)
    if (!isFilter) return { labels: withoutName(labels), values: computed, has }
    return { labels, values, has: has.map((present, step) => (present === 1 && computed[step] === 1 ? 1 : 0)) }
  })
  return isFilter ? changed : joinSameLabels(changed)
}
