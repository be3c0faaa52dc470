import type { AttributeOperator } from '../../../schemas/http/traces/where.ts'
import type { BoundCondition } from '../../select.ts'
import { attributeText, keyPattern } from './attribute-text.ts'
import { attributeOf, escapeText, packedCondition, storedKey } from './packed-attributes.ts'

/** A condition on an attribute of a row. `value` is empty with `exists` and `absent`. */
export interface AttributeCondition {
  readonly key: string
  readonly operator: AttributeOperator
  readonly value: string
}

/** Returns the conditions on rows with `attribute_keys` and `attribute_values`, and their parameters. */
export function attributeConditions(conditions: readonly AttributeCondition[]): {
  readonly sql: readonly string[]
  readonly params: Readonly<Record<string, unknown>>
} {
  const bound = conditions.map((condition, i) => boundCondition(`attribute${i}`, condition))
  return { sql: bound.map(({ sql }) => sql), params: Object.assign({}, ...bound.map(({ params }) => params)) }
}

function boundCondition(name: string, { key, operator, value }: AttributeCondition): BoundCondition {
  switch (operator) {
    case '=':
      return packedCondition(name, { key, value })
    case '!=': {
      const { sql, params } = packedCondition(name, { key, value })
      return { sql: `NOT (${sql})`, params }
    }
    case 'exists':
    case 'absent': {
      const { exists } = attributeOf(`{${name}Key: String}`)
      return { sql: operator === 'exists' ? exists : `NOT (${exists})`, params: { [`${name}Key`]: storedKey(key) } }
    }
    case 'contains':
      return containing(name, key, value)
    default: {
      const text = attributeText(`{${name}Pattern: String}`)
      return {
        sql: `toFloat64OrNull(${text}) ${operator} {${name}Value: Float64}`,
        params: { [`${name}Pattern`]: keyPattern(key), [`${name}Value`]: Number(value) },
      }
    }
  }
}

function containing(name: string, key: string, value: string): BoundCondition {
  const found = (text: string) => `positionCaseInsensitiveUTF8(${text}, {${name}Value: String}) > 0`
  // Most rows are left out by all values together, in the least time, unless the text may be stored in another way.
  const anywhere = escapeText(value) === value ? [found('attribute_values')] : []
  return {
    sql: [...anywhere, found(attributeText(`{${name}Pattern: String}`))].join(' AND '),
    params: { [`${name}Pattern`]: keyPattern(key), [`${name}Value`]: value },
  }
}
