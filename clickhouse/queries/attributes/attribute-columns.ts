/** Keys, texts of the values and types of attributes. */
export type AttributeColumns = readonly [keys: string[], values: string[], types: AttributeType[]]

/** Type of the value of an attribute, as the tables store it. */
export type AttributeType = 'empty' | 'string' | 'bool' | 'int' | 'double' | 'array' | 'kvlist' | 'bytes'

/** Types by their codes (`ValueType` in workers/otlp/protobuf/any-value.ts). */
export const TYPES: readonly AttributeType[] = ['empty', 'string', 'bool', 'int', 'double', 'array', 'kvlist', 'bytes']
