import type { GrowingBuffer } from '../native/growing-buffer.ts'
import { type Column, column } from '../native/table-buffer.ts'

/** Column type of a value's type code. The codes are `ValueType` in workers/otlp/protobuf/any-value.ts. */
export const VALUE_TYPE =
  "Enum8('empty' = 0, 'string' = 1, 'bool' = 2, 'int' = 3, 'double' = 4, 'array' = 5, 'kvlist' = 6, 'bytes' = 7)"

/** Keys, texts and type codes of attributes, filled by a decoder. */
export interface AttributeBuffers {
  keys: GrowingBuffer
  values: GrowingBuffer
  types: GrowingBuffer
}

/** Returns the two columns of attributes: a Map, and the types of its values. Both are divided by the same offsets. */
export function attributeColumns(prefix: string, offsets: GrowingBuffer, attributes: AttributeBuffers): Column[] {
  return [
    column(`${prefix}attributes`, 'Map(String, String)', offsets, attributes.keys, attributes.values),
    column(`${prefix}attribute_types`, `Array(${VALUE_TYPE})`, offsets, attributes.types),
  ]
}
