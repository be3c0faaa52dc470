/** What is given for the text of a key, and for the parts of its value. */
interface GivenTo<T> {
  readonly key: T
  readonly inner: T
}

/** How a JSON value is changed. Replacements are JSON. */
interface Changes<T> {
  /**
   * Returns what takes the place of the value of a key, whether the member stays as it is, or what `literal` is given for the key
   * and for the parts of the value. `outer` is what the parts of the value around it are given.
   */
  member(key: string, outer: T, valueText: () => string): string | { readonly skip: boolean } | GivenTo<T>
  /** Returns what takes the place of a string or a number, or undefined if it stays. */
  literal(text: string, given: T): string | undefined
}

/**
 * Returns the text of a valid JSON value with some values replaced. Everything else stays byte for byte: numbers of any size,
 * spaces, and keys that repeat. `outermost` is given for what is in no object.
 */
export function replaceInJson<T>(json: string, outermost: T, { member, literal }: Changes<T>): string {
  /** Each open object or list, and what is given for its parts. */
  const open: { readonly isObject: boolean; readonly given: T }[] = []
  let given = outermost
  let expectsKey = false
  let [out, from] = ['', 0]
  const replace = (start: number, end: number, text: string) => {
    out += json.slice(from, start) + text
    from = end
  }
  for (let at = 0; at < json.length; ) {
    const character = json[at] as string
    if (expectsKey && character === '"') {
      expectsKey = false
      const end = endOfString(json, at)
      const start = startOfValue(json, json.indexOf(':', end) + 1)
      const outer = open.at(-1)?.given ?? outermost
      const change = member(JSON.parse(json.slice(at, end)) as string, outer, () =>
        json.slice(start, endOfValue(json, start)),
      )
      const keyText =
        typeof change !== 'string' && 'key' in change ? literal(json.slice(at, end), change.key) : undefined
      if (keyText !== undefined) replace(at, end, keyText)
      at = start
      if (typeof change === 'string') replace(start, endOfValue(json, start), change)
      else given = 'inner' in change ? change.inner : outer
      if (typeof change === 'string' || ('skip' in change && change.skip)) at = endOfValue(json, start)
      continue
    }
    if (character === '"' || character === '-' || (character >= '0' && character <= '9')) {
      const end = endOfValue(json, at)
      const text = literal(json.slice(at, end), given)
      if (text !== undefined) replace(at, end, text)
      at = end
      continue
    }
    if (character === '{' || character === '[') open.push({ isObject: character === '{', given })
    else if (character === '}' || character === ']') open.pop()
    expectsKey =
      character === '{' || (character === ',' ? open.at(-1)?.isObject === true : expectsKey && isSpace(character))
    if (character === ',' || character === '[') given = open.at(-1)?.given ?? outermost
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
