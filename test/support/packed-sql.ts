/** Returns expressions of `attribute_keys` and `attribute_values` of a Map and codes of types, without zero bytes in its texts. */
export function packedAttributes(map: string, types: string): readonly [keys: string, values: string] {
  const codes = `arrayStringConcat(arrayMap(t -> char(48 + t), ${types}))`
  const keys = `arrayStringConcat(arrayMap(k -> concat(k, '\\0'), mapKeys(${map})))`
  return [`concat(${codes}, '\\0', ${keys})`, `arrayStringConcat(mapValues(${map}), '\\0')`]
}

/** Returns the expression of a list of 64-bit numbers as bytes. */
export function packedNumbers(list: string): string {
  return `arrayStringConcat(arrayMap(x -> concat('', reinterpretAsFixedString(x)), ${list}))`
}
