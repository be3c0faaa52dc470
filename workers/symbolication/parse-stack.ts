import { linesOf } from '../exceptions/stack-frames.ts'

const MAX_FRAMES = 100

/** A frame of generated code as its stack names it. Line and column count from 1, and are 0 where it names none. */
export interface GeneratedFrame {
  readonly function: string
  readonly file: string
  readonly line: number
  readonly column: number
}

/**
 * The frames of a JavaScript stack, innermost first: V8 (Chrome, Node, Hermes), Firefox and Safari. Every line is cut
 * first and then searched with `indexOf` and its like, so the time is linear in the text whatever it holds.
 * (`error-stack-parser-es` takes 0.24 s for one line of 1,000 quotes, and leaves parentheses out of file names, as
 * Next.js has them; on all else the two agree, which a test makes sure of.)
 */
export function parseStack(stack: string): GeneratedFrame[] {
  const v8: GeneratedFrame[] = []
  const gecko: GeneratedFrame[] = []
  for (const line of linesOf(stack)) {
    const isV8 = line.startsWith('at ')
    const frame = isV8 ? readV8Frame(line.slice(3)) : v8.length === 0 ? readGeckoFrame(line) : undefined
    if (frame === undefined) continue
    const frames = isV8 ? v8 : gecko
    frames.push(frame)
    if (frames.length === MAX_FRAMES) break
  }
  return v8.length > 0 ? v8 : gecko
}

/** `async Type.method [as alias] (file:1:2)`, `new Type (file:1:2)` or `file:1:2`. */
function readV8Frame(text: string): GeneratedFrame | undefined {
  const call = text.startsWith('async ') ? text.slice(6) : text
  if (!call.endsWith(')')) {
    const place = readPlace(call)
    return place.column > 0 ? { function: '', ...place } : undefined
  }
  const open = openingOfLast(call)
  if (open < 0) return undefined
  const inside = evalSite(call.slice(open + 1, -1))
  const place = readPlace(inside.startsWith('address at ') ? inside.slice(11) : inside)
  // Lines of a message, and frames of Java, may look like this too, but name no column.
  if (place.column === 0 && !/^(<anonymous>|native|index \d{1,9})$/.test(place.file)) return undefined
  return { function: v8Function(call.slice(0, open).trim()), ...place }
}

function v8Function(name: string): string {
  const alias = name.indexOf(' [as ')
  const own = alias < 0 ? name : name.slice(0, alias)
  return own === '<anonymous>' || own === 'Object.<anonymous>' ? '' : own
}

/** Of `eval at load (file:1:2), <anonymous>:1:1` the call of eval: what was evaluated has no file. */
function evalSite(place: string): string {
  let site = place
  while (site.startsWith('eval at ')) {
    const open = site.indexOf(' (')
    const close = site.lastIndexOf(')')
    if (open < 0 || close < open) return ''
    site = site.slice(open + 2, close)
  }
  return site
}

/** `method@file:1:2`, `async*method@file:1:2`, `@file:1:2`, `file:1:2` or `method@[native code]`. */
function readGeckoFrame(line: string): GeneratedFrame | undefined {
  const at = functionEnd(line)
  const place = readGeckoPlace(line.slice(at + 1))
  if (place.line === 0 && (at < 0 || place.file !== '[native code]')) return undefined
  if (at < 0 && !place.file.includes('/')) return undefined
  return { function: geckoFunction(at < 0 ? '' : line.slice(0, at)), ...place }
}

/** The `@` behind the function. A path may have one too (`/@scope/x.js`), a function hardly. */
function functionEnd(line: string): number {
  const at = line.indexOf('@')
  const slash = line.indexOf('/')
  // `/` is of the function only in the names that Firefox gives to functions within functions: `outer/inner<`.
  return slash >= 0 && slash < at && line.slice(0, at).includes('://') ? -1 : at
}

/** Firefox says what called it in the background (`async*`, `setTimeout handler*`), Safari which code it is. */
function geckoFunction(name: string): string {
  const own = name.slice(name.lastIndexOf('*') + 1)
  if (own === 'module code' || own === 'global code' || own === 'eval code') return ''
  return own.startsWith('async ') ? own.slice(6) : own
}

/** Firefox: `file line 5 > eval:1:1` is line 5 of the file, without a column. */
function readGeckoPlace(text: string): Omit<GeneratedFrame, 'function'> {
  const evalAt = text.indexOf(' > ')
  const lineAt = evalAt < 0 ? -1 : text.lastIndexOf(' line ', evalAt)
  if (lineAt < 0) return readPlace(text)
  const line = numberIn(text.slice(lineAt + 6, evalAt))
  return { file: text.slice(0, lineAt), line, column: 0 }
}

/** Takes `:12:34` or `:12` off the end of a place. */
function readPlace(place: string): Omit<GeneratedFrame, 'function'> {
  const last = takeNumber(place)
  if (last === undefined) return { file: place, line: 0, column: 0 }
  const first = takeNumber(last.rest)
  if (first === undefined) return { file: last.rest, line: last.number, column: 0 }
  return { file: first.rest, line: first.number, column: last.number }
}

function takeNumber(text: string): { rest: string; number: number } | undefined {
  const colon = text.lastIndexOf(':')
  const number = colon <= 0 ? 0 : numberIn(text.slice(colon + 1))
  return number === 0 ? undefined : { rest: text.slice(0, colon), number }
}

/** 0 for anything but a whole number that a position can be. */
function numberIn(digits: string): number {
  if (digits.length === 0 || digits.length > 9) return 0
  for (let i = 0; i < digits.length; i++) {
    const code = digits.charCodeAt(i)
    if (code < 48 || code > 57) return 0
  }
  return Number(digits)
}

/** The parenthesis that the last one closes: paths have parentheses too. */
function openingOfLast(call: string): number {
  let depth = 0
  for (let i = call.length - 1; i >= 0; i--) {
    if (call[i] === ')') depth++
    else if (call[i] === '(' && --depth === 0) return i
  }
  return -1
}
