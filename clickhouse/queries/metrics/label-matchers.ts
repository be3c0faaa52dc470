import type { BoundCondition } from '../../select.ts'
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
/** Column of that label. */
export const INSTANCE = `JSONExtractString(CAST(resource, 'String'), '${INSTANCE_LABEL}')`

/** Returns the condition that `column` matches. Its value is bound to `param`. */
export function valueCondition(column: string, { operator, value }: LabelMatcher, param: string): BoundCondition {
  if (operator === '=' || operator === '!=') {
    return { sql: `${column} ${operator} {${param}: String}`, params: { [param]: value } }
  }
  const sql = `match(${column}, {${param}: String})`
  return { sql: operator === '=~' ? sql : `NOT ${sql}`, params: { [param]: `^(?s:${value})$` } }
}

/** Returns the condition on the labels of points. `columns` has expressions for labels that are no attributes. */
export function labelsCondition(
  matchers: readonly LabelMatcher[],
  columns: Readonly<Record<string, string>> = {},
): BoundCondition {
  const conditions = matchers.map((matcher, i) => {
    const { label } = matcher
    const column = Object.hasOwn(columns, label) ? (columns[label] as string) : pointLabel(label, `label${i}`)
    const { sql, params } = valueCondition(column, matcher, `labelValue${i}`)
    return { sql, params: { ...params, [`label${i}`]: label } }
  })
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' AND ') || 'true',
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  }
}

/** Returns the column of a label of points, whose key is bound to `param`. */
export function pointLabel(label: string, param: string): string {
  return label === INSTANCE_LABEL ? INSTANCE : labelColumn(label, param)
}
