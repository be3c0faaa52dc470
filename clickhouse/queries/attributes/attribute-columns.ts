/** Keys, texts of the values and types of attributes. */
export type AttributeColumns = readonly [keys: string[], values: string[], types: AttributeType[]]

/** Type of the value of an attribute, as the tables store it. */
export type AttributeType = 'empty' | 'string' | 'bool' | 'int' | 'double' | 'array' | 'kvlist' | 'bytes'

/** Types by their codes (`ValueType` in workers/otlp/protobuf/any-value.ts). */
export const TYPES: readonly AttributeType[] = ['empty', 'string', 'bool', 'int', 'double', 'array', 'kvlist', 'bytes']

/**
 * Returns the expression of `AttributeColumns`; `of` is the prefix of the columns. Its tuple is an array in JSON with the setting
 * `output_format_json_named_tuples_as_objects: 0`.
 */
export function attributeColumns(of: string): string {
  return `(mapKeys(${of}attributes), mapValues(${of}attributes), ${of}attribute_types)`
}
