import type { LabelMatcher } from '../clickhouse/queries/metrics/label-matchers.ts'

/** Label with the name of a metric. */
export const NAME_LABEL = '__name__'

/** Type of the value of an expression. */
export type ExpressionType = 'scalar' | 'string' | 'vector' | 'range'

/** Series of a metric. Its value is that of the last point of the five minutes before, or all points of `rangeMs`. */
export interface SelectorExpression {
  readonly kind: 'selector'
  readonly matchers: readonly LabelMatcher[]
  /** How far in the past the points are read, in ms. */
  readonly offsetMs: number
  readonly rangeMs: number | undefined
}

/** Call of a function. */
export interface CallExpression {
  readonly kind: 'call'
  readonly name: string
  readonly args: readonly Expression[]
}

/** Aggregation of series into groups. */
export interface AggregateExpression {
  readonly kind: 'aggregate'
  readonly operator: string
  readonly parameter: Expression | undefined
  readonly of: Expression
  /** Labels of the groups, or those that they do not have if `isWithout`. */
  readonly grouping: readonly string[]
  readonly isWithout: boolean
}

/** How the series of two vectors are matched. */
export interface VectorMatching {
  /** Labels that must be equal, or those that need not be if not `isOn`. */
  readonly labels: readonly string[]
  readonly isOn: boolean
  /** The side of which several series may match one of the other. */
  readonly many: 'left' | 'right' | undefined
  /** Labels that the result takes from the other side. */
  readonly include: readonly string[]
}

/** Operation with two operands. */
export interface BinaryExpression {
  readonly kind: 'binary'
  readonly operator: string
  readonly left: Expression
  readonly right: Expression
  /** Whether a comparison results in 0 or 1 instead of leaving out values. */
  readonly isBool: boolean
  readonly matching: VectorMatching
}

/** A parsed query. */
export type Expression =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'string'; readonly text: string }
  | { readonly kind: 'negation'; readonly of: Expression }
  | SelectorExpression
  | CallExpression
  | AggregateExpression
  | BinaryExpression

/** Functions with the types of their arguments. Those with a name in `OPTIONAL_ARGS` may leave out the last one. */
export const FUNCTION_ARGS: Readonly<Record<string, readonly ExpressionType[]>> = {
  ...namesWith(['abs', 'ceil', 'exp', 'floor', 'ln', 'log10', 'log2', 'sgn', 'sqrt'], ['vector']),
  ...namesWith(['rate', 'increase', 'delta'], ['range']),
  ...namesWith(
    ['avg', 'count', 'last', 'max', 'min', 'present', 'sum'].map(of => `${of}_over_time`),
    ['range'],
  ),
  ...namesWith(['clamp_max', 'clamp_min', 'round'], ['vector', 'scalar']),
  ...namesWith(['absent', 'scalar', 'sort', 'sort_desc'], ['vector']),
  histogram_quantile: ['scalar', 'vector'],
  time: [],
  vector: ['scalar'],
}
/** Functions whose last argument may be left out. */
export const OPTIONAL_ARGS: readonly string[] = ['round']
/** Functions that read points of a range. */
export const isRangeFunction = (name: string): boolean => FUNCTION_ARGS[name]?.[0] === 'range'

/** Aggregations. */
export const AGGREGATIONS: readonly string[] = [
  ...['avg', 'count', 'group', 'max', 'min', 'stddev', 'stdvar', 'sum', 'topk', 'bottomk', 'quantile'],
]
/** Aggregations with a parameter. */
export const WITH_PARAMETER: readonly string[] = ['topk', 'bottomk', 'quantile']

/** Operators of sets, which need two vectors. */
export const SET_OPERATORS: readonly string[] = ['and', 'or', 'unless']
/** Operators that compare. */
export const COMPARISONS: readonly string[] = ['==', '!=', '>', '<', '>=', '<=']

function namesWith(names: readonly string[], args: readonly ExpressionType[]) {
  return Object.fromEntries(names.map(name => [name, args]))
}

/** Returns the type of the value of an expression. */
export function typeOf(expression: Expression): ExpressionType {
  switch (expression.kind) {
    case 'number':
      return 'scalar'
    case 'string':
      return 'string'
    case 'negation':
      return typeOf(expression.of)
    case 'selector':
      return expression.rangeMs === undefined ? 'vector' : 'range'
    case 'call':
      return expression.name === 'time' || expression.name === 'scalar' ? 'scalar' : 'vector'
    case 'aggregate':
      return 'vector'
    case 'binary':
      return typeOf(expression.left) === 'scalar' && typeOf(expression.right) === 'scalar' ? 'scalar' : 'vector'
  }
}

/** Returns all selectors of an expression. */
export function selectorsOf(expression: Expression): readonly SelectorExpression[] {
  switch (expression.kind) {
    case 'selector':
      return [expression]
    case 'negation':
      return selectorsOf(expression.of)
    case 'call':
      return expression.args.flatMap(selectorsOf)
    case 'aggregate':
      return [...(expression.parameter ? selectorsOf(expression.parameter) : []), ...selectorsOf(expression.of)]
    case 'binary':
      return [...selectorsOf(expression.left), ...selectorsOf(expression.right)]
    default:
      return []
  }
}
