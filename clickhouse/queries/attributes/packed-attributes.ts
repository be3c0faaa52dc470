import type { BoundCondition } from '../../select.ts'
import { ESCAPED_VALUE, FIRST_TYPE } from '../../tables/packed-attributes.ts'
import { type AttributeColumns, TYPES } from './attribute-columns.ts'

/** An attribute with the text of its value. */
export interface AttributeValue {
  readonly key: string
  readonly value: string
}

const SEPARATOR = '\0'

/** Expression of the keys of a row in the order of its values, escaped. */
export const KEYS = "arrayPopFront(arrayPopBack(splitByChar('\\0', attribute_keys)))"
/** Expression of the values of a row in the order of its keys. Some are escaped, by the bit of their types. */
export const VALUES = "splitByChar('\\0', attribute_values)"

/** A list of keys with the codes of their types. */
interface KeyList {
  readonly text: string
  readonly codes: readonly number[]
  readonly keys: AttributeColumns[0]
  readonly types: AttributeColumns[2]
}

/** The list that was read last. Rows beside each other mostly have the same, which then is in memory once. */
let latest: KeyList = { text: '', codes: [], keys: [], types: [] }

/** Returns the attributes of a row from `attribute_keys` and `attribute_values`, in the order in which they were sent. */
export function readAttributes(keyList: string, valueList: string): AttributeColumns {
  if (keyList === '') return [[], [], []]
  if (keyList !== latest.text) latest = readKeyList(keyList)
  const { codes, keys, types } = latest
  const values = valueList
    .split(SEPARATOR)
    .map((value, i) => (((codes[i] ?? 0) & ESCAPED_VALUE) === 0 ? value : unescapeText(value)))
  return [keys, values, types]
}

function readKeyList(text: string): KeyList {
  const [types = '', ...keys] = text.slice(0, -1).split(SEPARATOR)
  const codes = Array.from(types, character => character.charCodeAt(0) - FIRST_TYPE)
  return {
    text,
    codes,
    keys: keys.map(unescapeText),
    types: codes.map(code => TYPES[code & ~ESCAPED_VALUE] ?? 'empty'),
  }
}

/** Returns the text of an escaped key or value. */
export function unescapeText(text: string): string {
  return text.includes('\x01') ? text.replaceAll('\x01\x02', '\0').replaceAll('\x01\x03', '\x01') : text
}

/** Returns a text as keys are stored, and values that have a zero byte. */
export function escapeText(text: string): string {
  return text.replaceAll('\x01', '\x01\x03').replaceAll('\0', '\x01\x02')
}

/** Returns a key as it is stored, with the bytes around it. */
export function storedKey(key: string): string {
  return `${SEPARATOR}${escapeText(key)}${SEPARATOR}`
}

/** A value as it is stored. */
interface StoredValue {
  readonly text: string
  /** Whether the type must have the bit of escaped values. Undefined if no other value has this text. */
  readonly isEscaped: boolean | undefined
}

/** Returns a value as it is stored. */
function storedValue(value: string): StoredValue {
  if (value.includes('\0')) return { text: escapeText(value), isEscaped: true }
  return { text: value, isEscaped: value.includes('\x01') ? false : undefined }
}

/**
 * Expressions about the first attribute with a key, given as a parameter that is bound to its `storedKey`. All but the value are
 * functions of texts, which ClickHouse computes once for each different list of keys.
 */
export function attributeOf(boundKey: string) {
  const at = `position(attribute_keys, ${boundKey})`
  const index = `countSubstrings(substring(attribute_keys, 1, ${at}), '\\0')`
  return {
    exists: `${at} > 0`,
    /** As it is stored. */
    value: `${VALUES}[toUInt32(${index})]`,
    isEscaped: `bitAnd(ascii(substring(attribute_keys, toUInt32(${index}), 1)) - ${FIRST_TYPE}, ${ESCAPED_VALUE}) != 0`,
  }
}

/** The expression of the index `by_attribute`. */
const HASHES = `arrayMap((k, v) -> cityHash64(k, v), ${KEYS}, arrayResize(${VALUES}, length(${KEYS})))`

/**
 * Returns the condition that a row has this attribute. Its parameters begin with `name`, which distinguishes several conditions of
 * one query. Rows are compared by their texts, so that two attributes with the same hash stay two.
 */
export function packedCondition(name: string, { key, value }: AttributeValue): BoundCondition {
  const attribute = attributeOf(`{${name}Key: String}`)
  const stored = storedValue(value)
  const conditions = [
    // Most rows are left out by it in the least time.
    ...(stored.text === '' ? [] : [`position(attribute_values, {${name}Value: String}) > 0`]),
    attribute.exists,
    `${attribute.value} = {${name}Value: String}`,
    ...(stored.isEscaped === undefined ? [] : [`${stored.isEscaped ? '' : 'NOT '}(${attribute.isEscaped})`]),
    packedHint(`{${name}HashedKey: String}`, `{${name}Value: String}`),
  ]
  const boundKey = storedKey(key)
  const params = {
    [`${name}Key`]: boundKey,
    [`${name}HashedKey`]: boundKey.slice(1, -1),
    [`${name}Value`]: stored.text,
  }
  return { sql: conditions.join(' AND '), params }
}

/**
 * Returns the condition that the index chooses granules by. Key and value are expressions of texts as they are stored. It is the
 * last one of several, because it costs most where there is no index. `indexHint` would save that, but finds no index of an
 * expression with constants.
 */
function packedHint(key: string, value: string): string {
  return `has(${HASHES}, cityHash64(${key}, ${value}))`
}
