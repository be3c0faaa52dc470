import { escapeText, VALUES } from './packed-attributes.ts'

/**
 * Returns the pattern of a key in `attribute_keys` and of all that follows it. With it ClickHouse computes the position of the
 * attribute once for each different list of keys, which takes half the time of a search of each row.
 */
export function keyPattern(key: string): string {
  const quoted = escapeText(key).replace(/[\0-\x7f]/g, character =>
    /\w/.test(character) ? character : `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
  return `\\x00${quoted}\\x00\\C*`
}

/** Returns the expression of the text of an attribute, whose `keyPattern` is given. It is empty if the row lacks the attribute. */
export function attributeText(pattern: string): string {
  const index = `toUInt32(countSubstrings(replaceRegexpOne(attribute_keys, ${pattern}, ''), '\\0') + 1)`
  const value = `${VALUES}[${index}]`
  const isEscaped = `match(substring(attribute_keys, ${index}, 1), '[8-?]')`
  // Nearly always no value of a row is escaped.
  return `if(match(attribute_keys, '^[0-7]*\\\\x00') OR NOT ${isEscaped}, ${value}, ${unescaped(value)})`
}

/** Returns the expression of the text that was escaped. */
export function unescaped(text: string): string {
  return `replaceAll(replaceAll(${text}, '\\x01\\x02', '\\0'), '\\x01\\x03', '\\x01')`
}
