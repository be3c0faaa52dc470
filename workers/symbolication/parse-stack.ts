import { linesOf } from '../exceptions/stack-frames.ts'

const MAX_FRAMES = 100

/** A stack frame in generated code. Line and column count from 1, and are 0 if the stack has none. */
export interface StackFrame {
  readonly function: string
  readonly file: string
  readonly line: number
  readonly column: number
}

/**
 * Reads the frames of a JavaScript stack, innermost first: V8 (Chrome, Node, Hermes), Firefox and Safari. Every line is
 * cut first and then searched with `indexOf` and similar methods, so the time is linear in the length of any text.
 * (`error-stack-parser-es` takes 0.24 s for a line of 1,000 quotes, and drops the parentheses in file names of Next.js.
 * A test checks that both agree on all other stacks.)
 */
export function parseStack(stack: string): StackFrame[] {
  const v8: StackFrame[] = []
  const gecko: StackFrame[] = []
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

/** Reads `async Type.method [as alias] (file:1:2)`, `new Type (file:1:2)` or `file:1:2`. */
function readV8Frame(text: string): StackFrame | undefined {
  const call = text.startsWith('async ') ? text.slice(6) : text
  if (!call.endsWith(')')) {
    const location = readLocation(call)
    return location.column > 0 ? { function: '', ...location } : undefined
  }
  const open = openingOfLast(call)
  if (open < 0) return undefined
  const inside = evalSite(call.slice(open + 1, -1))
  const location = readLocation(inside.startsWith('address at ') ? inside.slice(11) : inside)
  // Lines of a message and frames of Java can look similar, but have no column.
  if (location.column === 0 && !/^(<anonymous>|native|index \d{1,9})$/.test(location.file)) return undefined
  return { function: v8Function(call.slice(0, open).trim()), ...location }
}

function v8Function(name: string): string {
  const alias = name.indexOf(' [as ')
  const own = alias < 0 ? name : name.slice(0, alias)
  return own === '<anonymous>' || own === 'Object.<anonymous>' ? '' : own
}

/** Returns the call of eval in `eval at load (file:1:2), <anonymous>:1:1`, because evaluated code has no file. */
function evalSite(text: string): string {
  let site = text
  while (site.startsWith('eval at ')) {
    const open = site.indexOf(' (')
    const close = site.lastIndexOf(')')
    if (open < 0 || close < open) return ''
    site = site.slice(open + 2, close)
  }
  return site
}

/** Reads `method@file:1:2`, `async*method@file:1:2`, `@file:1:2`, `file:1:2` or `method@[native code]`. */
function readGeckoFrame(line: string): StackFrame | undefined {
  const at = functionEnd(line)
  const location = readGeckoLocation(line.slice(at + 1))
  if (location.line === 0 && (at < 0 || location.file !== '[native code]')) return undefined
  if (at < 0 && !location.file.includes('/')) return undefined
  return { function: geckoFunction(at < 0 ? '' : line.slice(0, at)), ...location }
}

/** Finds the `@` after the function. A path can contain `@` too (`/@scope/x.js`), a function rarely. */
function functionEnd(line: string): number {
  const at = line.indexOf('@')
  const slash = line.indexOf('/')
  // A function contains `/` only in the names that Firefox gives to nested functions: `outer/inner<`.
  return slash >= 0 && slash < at && line.slice(0, at).includes('://') ? -1 : at
}

/**
 * Removes the async cause that Firefox adds (`async*`, `setTimeout handler*`) and the kind of code that Safari adds.
 */
function geckoFunction(name: string): string {
  const own = name.slice(name.lastIndexOf('*') + 1)
  if (own === 'module code' || own === 'global code' || own === 'eval code') return ''
  return own.startsWith('async ') ? own.slice(6) : own
}

/** Reads a location of Firefox. `file line 5 > eval:1:1` is line 5 of the file, without a column. */
function readGeckoLocation(text: string): Omit<StackFrame, 'function'> {
  const evalAt = text.indexOf(' > ')
  const lineAt = evalAt < 0 ? -1 : text.lastIndexOf(' line ', evalAt)
  if (lineAt < 0) return readLocation(text)
  const line = numberIn(text.slice(lineAt + 6, evalAt))
  return { file: text.slice(0, lineAt), line, column: 0 }
}

/** Splits `:12:34` or `:12` from the end of a location. */
function readLocation(text: string): Omit<StackFrame, 'function'> {
  const last = takeNumber(text)
  if (last === undefined) return { file: text, line: 0, column: 0 }
  const first = takeNumber(last.rest)
  if (first === undefined) return { file: last.rest, line: last.number, column: 0 }
  return { file: first.rest, line: first.number, column: last.number }
}

function takeNumber(text: string): { rest: string; number: number } | undefined {
  const colon = text.lastIndexOf(':')
  const number = colon <= 0 ? 0 : numberIn(text.slice(colon + 1))
  return number === 0 ? undefined : { rest: text.slice(0, colon), number }
}

/** Returns a whole number of up to nine digits, or 0 for any other text. */
function numberIn(digits: string): number {
  if (digits.length === 0 || digits.length > 9) return 0
  for (let i = 0; i < digits.length; i++) {
    const code = digits.charCodeAt(i)
    if (code < 48 || code > 57) return 0
  }
  return Number(digits)
}

/** Finds the parenthesis that the last one closes. Paths can contain parentheses too. */
function openingOfLast(call: string): number {
  let depth = 0
  for (let i = call.length - 1; i >= 0; i--) {
    if (call[i] === ')') depth++
    else if (call[i] === '(' && --depth === 0) return i
  }
  return -1
}
