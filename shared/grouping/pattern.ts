/**
 * Returns a function that compares a text with a pattern, in which `*` is any text, the empty one and line ends included. It takes
 * time linear in the length of the text, whatever the pattern is.
 */
export function compilePattern(pattern: string): (text: string) => boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return text => text === pattern
  const between = others.filter(part => part !== '').map(compileSearch)
  return text => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
    const end = text.length - last.length
    let at = first.length
    for (const search of between) {
      at = search(text, at, end)
      if (at < 0) return false
    }
    return true
  }
}

/** Returns a function that finds the end of the first occurrence of a part (Knuth, Morris and Pratt), or -1. */
function compileSearch(part: string): (text: string, start: number, end: number) => number {
  // For each position, the length of the longest beginning of the part that ends there.
  const borders = [0]
  for (let i = 1, length = 0; i < part.length; ) {
    if (part[i] === part[length]) borders[i++] = ++length
    else if (length > 0) length = borders[length - 1] as number
    else borders[i++] = 0
  }
  return (text, start, end) => {
    for (let i = start, found = 0; i < end; i++) {
      while (found > 0 && text.charCodeAt(i) !== part.charCodeAt(found)) found = borders[found - 1] as number
      if (text.charCodeAt(i) === part.charCodeAt(found)) found++
      if (found === part.length) return i + 1
    }
    return -1
  }
}
