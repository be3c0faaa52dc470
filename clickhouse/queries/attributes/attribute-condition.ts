import type { BoundCondition } from '../../select.ts'

/** An attribute with the text of its value, as the tables store it. */
export interface AttributeValue {
  readonly key: string
  readonly value: string
}

/** The expression of the index `by_attribute` of `spans` and `logs`. */
const HASHES = 'arrayMap((k, v) -> cityHash64(k, v), mapKeys(attributes), mapValues(attributes))'

/**
 * Returns the condition that a row of `spans` or `logs` has this attribute. Its parameters begin with `name`, which
 * distinguishes several conditions of one query. The hint only chooses granules, by the index; rows are compared by their
 * texts, so that two attributes with the same hash stay two.
 */
export function attributeCondition(name: string, { key, value }: AttributeValue): BoundCondition {
  const boundKey = `{${name}Key: String}`
  const boundValue = `{${name}Value: String}`
  const isEqual = `attributes[${boundKey}] = ${boundValue}`
  const conditions = [
    attributeHint(boundKey, boundValue),
    // A map returns an empty text for a key that it lacks.
    ...(value === '' ? [`mapContains(attributes, ${boundKey})`] : []),
    isEqual,
  ]
  return { sql: conditions.join(' AND '), params: { [`${name}Key`]: key, [`${name}Value`]: value } }
}

/**
 * Returns the hint alone, for a column whose value is also that of an attribute. Key and value are expressions of texts. It
 * excludes granules without the attribute, and no row.
 */
export function attributeHint(key: string, value: string): string {
  return `indexHint(has(${HASHES}, cityHash64(${key}, ${value})))`
}
