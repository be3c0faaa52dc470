/** Returns what takes the place of the value of a key, as JSON, or undefined if the value stays. */
type Replace = (key: string, valueText: () => string) => string | undefined

/**
 * Returns the text of a valid JSON value with the values of some keys replaced. Everything else stays byte for byte: numbers of any
 * size, spaces, and keys that repeat.
 */
export function replaceInJson(json: string, replace: Replace): string {
  /** Whether each open value is an object. */
  const open: boolean[] = []
  let expectsKey = false
  let [out, from] = ['', 0]
  for (let at = 0; at < json.length; ) {
    const character = json[at]
    if (character === '"') {
      const end = endOfString(json, at)
      if (!expectsKey) {
        at = end
        continue
      }
      expectsKey = false
      const start = startOfValue(json, json.indexOf(':', end) + 1)
      const valueEnd = endOfValue(json, start)
      const replaced = replace(JSON.parse(json.slice(at, end)) as string, () => json.slice(start, valueEnd))
      at = replaced === undefined ? start : valueEnd
      if (replaced === undefined) continue
      out += json.slice(from, start) + replaced
      from = valueEnd
      continue
    }
    if (character === '{' || character === '[') open.push(character === '{')
    else if (character === '}' || character === ']') open.pop()
    expectsKey = character === '{' || (character === ',' ? open.at(-1) === true : expectsKey && isSpace(character))
    at++
  }
  return from === 0 ? json : out + json.slice(from)
}

const isSpace = (character: string | undefined) => character !== undefined && ' \n\r\t'.includes(character)

function endOfString(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    if (json[at] === '\\') at++
    else if (json[at] === '"') return at + 1
  }
}

function startOfValue(json: string, start: number): number {
  let at = start
  while (isSpace(json[at])) at++
  return at
}

function endOfValue(json: string, start: number): number {
  let depth = 0
  for (let at = start; at < json.length; ) {
    const character = json[at] as string
    if (character === '"') at = endOfString(json, at)
    else if (depth === 0 && (',}]'.includes(character) || isSpace(character))) return at
    else {
      if (character === '{' || character === '[') depth++
      else if (character === '}' || character === ']') depth--
      at++
    }
    if (depth === 0 && (character === '"' || character === '}' || character === ']')) return at
  }
  return json.length
}
