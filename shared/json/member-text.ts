/**
 * The text of one member of a JSON object, as it stands in the object's text: numbers of any size, the order of keys and
 * keys like `__proto__` survive, as they would not in `JSON.stringify(JSON.parse(text))`. The text must be valid JSON and
 * an object. Of members of one name the last counts, as for JSON.parse.
 */
export function memberText(json: string, name: string): MemberText | undefined {
  let found: MemberText | undefined
  let at = skipBlanks(json, json.indexOf('{') + 1)
  while (json[at] !== '}') {
    const keyEnd = endOfString(json, at)
    const key: unknown = JSON.parse(json.slice(at, keyEnd))
    const start = skipBlanks(json, skipBlanks(json, keyEnd) + 1)
    const value = scanValue(json, start)
    if (key === name) found = { text: json.slice(start, value.end), depth: value.depth }
    at = skipBlanks(json, value.end)
    if (json[at] === ',') at = skipBlanks(json, at + 1)
  }
  return found
}

export interface MemberText {
  readonly text: string
  /** How deep its objects and arrays are nested; 0 for a plain value, 1 for an object of plain values. */
  readonly depth: number
}

/** How deep the objects and arrays of a valid JSON text are nested: 0 for a plain value. */
export function nestingDepth(json: string): number {
  let depth = 0
  let deepest = 0
  for (let at = 0; at < json.length; ) {
    const character = json[at]
    if (character === '"') at = endOfString(json, at)
    else {
      if (character === '{' || character === '[') deepest = Math.max(deepest, ++depth)
      else if (character === '}' || character === ']') depth--
      at++
    }
  }
  return deepest
}

function scanValue(json: string, start: number): { end: number; depth: number } {
  let depth = 0
  let deepest = 0
  for (let at = start; ; ) {
    const character = json[at]
    if (character === '"') at = endOfString(json, at)
    else {
      if (depth === 0 && (character === ',' || character === '}')) return { end: trimEnd(json, at), depth: deepest }
      if (character === '{' || character === '[') deepest = Math.max(deepest, ++depth)
      else if (character === '}' || character === ']') depth--
      at++
    }
    // What is neither text nor nested ends at the next comma or brace above.
    if (depth === 0 && (character === '"' || character === '}' || character === ']')) return { end: at, depth: deepest }
  }
}

/** Past the closing quote of the string that begins here. */
function endOfString(json: string, start: number): number {
  let at = start + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

const BLANKS = ' \t\n\r'

function skipBlanks(json: string, start: number): number {
  let at = start
  while (at < json.length && BLANKS.includes(json[at] as string)) at++
  return at
}

function trimEnd(json: string, end: number): number {
  let at = end
  while (BLANKS.includes(json[at - 1] as string)) at--
  return at
}
