import type { BoundCondition } from '../../select.ts'
import { keyPattern } from '../attributes/attribute-text.ts'
import { readAttributes } from '../attributes/packed-attributes.ts'
import { labelColumn } from './metric-points.ts'

/** A condition on a label, as PromQL has it. A label that a series does not have is empty. */
export interface LabelMatcher {
  readonly label: string
  /** The last two compare with an expression of RE2, which must match the whole value. */
  readonly operator: '=' | '!=' | '=~' | '!~'
  readonly value: string
}

/** Label of the instance of a service, an attribute of its resource. */
export const INSTANCE_LABEL = 'service.instance.id'
/** Column of that label, from the second line of the origin, which ClickHouse cuts out once for each different origin. */
export const INSTANCE = `
  JSONExtractString(toString(extract(origin, '^[^\\n]*\\n([^\\n]*)')), '${INSTANCE_LABEL}')`

/** The columns `attribute_keys` and `attribute_values` of a point. */
export type PackedAttributes = readonly [keyList: string, valueList: string]

/** Returns attributes as labels. The last value of a repeated key counts. */
export function labelsOf([keyList, valueList]: PackedAttributes): Record<string, string> {
  const [keys, values] = readAttributes(keyList, valueList)
  return Object.fromEntries(keys.map((key, i) => [key, values[i] ?? '']))
}

/** Returns the condition that `column` matches. Its value is bound to `param`. */
export function valueCondition(column: string, { operator, value }: LabelMatcher, param: string): BoundCondition {
  if (operator === '=' || operator === '!=') {
    return { sql: `${column} ${operator} {${param}: String}`, params: { [param]: value } }
  }
  const sql = `match(${column}, {${param}: String})`
  return { sql: operator === '=~' ? sql : `NOT ${sql}`, params: { [param]: `^(?s:${value})$` } }
}

/** Returns the condition that all matchers match, given the column of each label. Its parameters begin with `name`. */
export function matchersCondition(
  matchers: readonly LabelMatcher[],
  columnOf: (label: string, index: number) => string,
  name: string,
): BoundCondition {
  const conditions = matchers.map((matcher, i) => valueCondition(columnOf(matcher.label, i), matcher, `${name}${i}`))
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND ') || 'true',
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  }
}

/** Returns the condition on the labels of points. `columns` has expressions for labels that are no attributes. */
export function labelsCondition(
  matchers: readonly LabelMatcher[],
  columns: Readonly<Record<string, string>> = {},
): BoundCondition {
  const columnOf = (label: string, i: number) =>
    Object.hasOwn(columns, label) ? (columns[label] as string) : pointLabel(label, `label${i}`)
  const { sql, params } = matchersCondition(matchers, columnOf, 'labelValue')
  const keys = Object.fromEntries(matchers.map(({ label }, i) => [`label${i}`, keyPattern(label)]))
  return { sql, params: { ...keys, ...params } }
}

/** Returns the column of a label of points, whose `keyPattern` is bound to `param`. */
export function pointLabel(label: string, param: string): string {
  return label === INSTANCE_LABEL ? INSTANCE : labelColumn(label, param)
}
