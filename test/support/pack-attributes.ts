import { escapeText } from '../../clickhouse/queries/attributes/packed-attributes.ts'

/** Returns the columns of attributes that are all texts, as workers write them. */
export function packAttributes(attributes: Readonly<Record<string, string>>): { keys: string; values: string } {
  const entries = Object.entries(attributes)
  if (entries.length === 0) return { keys: '', values: '' }
  // A value with a zero byte is escaped, and its type has the bit of it.
  const types = entries.map(([, value]) => (value.includes('\0') ? '9' : '1'))
  return {
    keys: `${types.join('')}\0${entries.map(([key]) => `${escapeText(key)}\0`).join('')}`,
    values: entries.map(([, value]) => (value.includes('\0') ? escapeText(value) : value)).join('\0'),
  }
}
