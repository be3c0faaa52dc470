import type { GrowingBuffer } from '../native/growing-buffer.ts'
import type { LowCardinality } from '../native/low-cardinality.ts'
import { type Column, column } from '../native/table-buffer.ts'

/*
 * The form of `attribute_keys` and `attribute_values`.
 *
 * attribute_keys: a character for the type of each value, then a zero byte, then each key with a zero byte after it. Empty if there
 *   are no attributes.
 * attribute_values: the texts of the values, with a zero byte between two.
 *
 * Keys are escaped if they have one of the two bytes of `ESCAPES_OF`. A value is escaped only if it has a zero byte, and then its
 * type has the bit `ESCAPED_VALUE`. So nearly all values are copied as they are, and ClickHouse divides them with `splitByChar`.
 */

/** Between two keys or values. */
export const SEPARATOR = 0
export const ESCAPE = 1
/** By byte: the one that is written for it after `ESCAPE`. */
export const ESCAPES_OF: readonly (number | undefined)[] = [2, 3]
/** The character of the type 0. */
export const FIRST_TYPE = 0x30
/** Bit of the type of a value that is escaped. */
export const ESCAPED_VALUE = 8

/** Returns the two columns of attributes. */
export function packedAttributeColumns({
  keyLists,
  values,
}: {
  readonly keyLists: LowCardinality
  readonly values: GrowingBuffer
}): Column[] {
  return [column('attribute_keys', 'LowCardinality(String)', keyLists), column('attribute_values', 'String', values)]
}
