import { openingOfLast, wholeNumber } from '../lines.ts'
import type { StackFrame } from '../stack.ts'

/** The parts of a frame that are read from its line. */
export type Call = Pick<StackFrame, 'function' | 'file' | 'line' | 'column'>

/** Reads `at async Type.method [as alias] (file:1:2)`, `at new Type (file:1:2)` or `at file:1:2`. */
export function readV8Frame(line: string): Call | undefined {
  if (!line.startsWith('at ')) return undefined
  const call = line.startsWith('at async ') && line[9] !== '(' ? line.slice(9) : line.slice(3)
  if (!call.endsWith(')')) {
    const location = readLocation(call)
    return location.column > 0 && isFile(location.file) ? { function: '', ...location } : undefined
  }
  const open = openingOfLast(call)
  // A call of Java has no space before the parenthesis.
  if (open < 0 || (open > 0 && call[open - 1] !== ' ')) return undefined
  const location = readPlace(evalSite(call.slice(open + 1, -1)))
  return location && { function: v8Function(call.slice(0, open).trim()), ...location }
}

/** Reads the text in parentheses. */
function readPlace(text: string): Omit<Call, 'function'> | undefined {
  if (text.startsWith('address at ')) return readAddress(text.slice(11))
  if (text === '<anonymous>' || text === 'native' || /^index \d{1,9}$/.test(text))
    return { file: text, line: 0, column: 0 }
  if (text.startsWith('wasm://')) return { file: text.slice(0, wasmEnd(text)), line: 0, column: 0 }
  const location = readLocation(text)
  return location.column > 0 && isFile(location.file) ? location : undefined
}

/** Reads an address of Hermes, `file:1:184`. Its offset counts from 0, and is kept as it is. */
function readAddress(text: string): Omit<Call, 'function'> | undefined {
  const last = takeNumber(text)
  const first = last && takeNumber(last.rest)
  if (last === undefined || first === undefined || first.number === 0) return undefined
  return { file: first.rest, line: first.number, column: last.number }
}

function wasmEnd(text: string): number {
  const at = text.indexOf(':wasm-function[')
  return at < 0 ? text.length : at
}

/** Names of files can contain spaces, but a name without a folder does not. A file has a letter. */
function isFile(file: string): boolean {
  if (file.startsWith('async ') || file.startsWith('new ')) return false
  return file.includes('/') || file.includes('\\') || (!/\s/.test(file) && /\p{L}/u.test(file))
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

/** Splits `:12:34` or `:12` from the end of a location. Numbers that are missing are 0. */
export function readLocation(text: string): Omit<Call, 'function'> {
  const last = takeNumber(text)
  if (last === undefined || last.number === 0) return { file: text, line: 0, column: 0 }
  const first = takeNumber(last.rest)
  if (first === undefined || first.number === 0) return { file: last.rest, line: last.number, column: 0 }
  return { file: first.rest, line: first.number, column: last.number }
}

function takeNumber(text: string): { rest: string; number: number } | undefined {
  const colon = text.lastIndexOf(':')
  const number = colon <= 0 ? undefined : wholeNumber(text.slice(colon + 1))
  return number === undefined ? undefined : { rest: text.slice(0, colon), number }
}
