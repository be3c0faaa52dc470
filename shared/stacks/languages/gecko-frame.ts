import { wholeNumber } from '../lines.ts'
import { type Call, readLocation } from './v8-frame.ts'

/** Reads `method@file:1:2`, `async*method@file:1:2`, `@file:1:2`, `file:1:2`, `method@[native code]` or `method`. */
export function readGeckoFrame(line: string): Call | undefined {
  const at = functionEnd(line)
  const name = at < 0 ? '' : geckoFunction(line.slice(0, at))
  if (name === undefined) return undefined
  const place = line.slice(at + 1)
  if (place === '' || (at < 0 && /^[\p{L}_$][\p{L}\p{N}_$.]*$/u.test(place))) {
    const own = name === '' ? place : name
    return own === '' ? undefined : { function: own, file: '', line: 0, column: 0 }
  }
  if (place === '[native code]') return at < 0 ? undefined : { function: name, file: place, line: 0, column: 0 }
  const location = readEval(place) ?? readLocation(place)
  if (location.line === 0 || !isScript(location.file, at < 0)) return undefined
  if (location.column === 0 && !place.includes(' > ')) return undefined
  return { function: name, ...location }
}

/** Finds the `@` after the function. A path can contain `@` too (`/@scope/x.js`), a function rarely. */
function functionEnd(line: string): number {
  const at = line.indexOf('@')
  const slash = line.indexOf('/')
  // A function contains `/` only in the names that Firefox gives to nested functions: `outer/inner<`.
  return slash >= 0 && slash < at && line.slice(0, at).includes('://') ? -1 : at
}

/**
 * Removes the async cause that Firefox adds (`async*`, `setTimeout handler*`) and the kind of code that Safari adds. Returns
 * undefined for a text that cannot be a name.
 */
function geckoFunction(name: string): string | undefined {
  const own = name.slice(name.lastIndexOf('*') + 1)
  if (own === 'module code' || own === 'global code' || own === 'eval code') return ''
  const last = own.startsWith('async ') ? own.slice(6) : own
  return /\s/.test(last.replace(/^[gs]et /, '')) ? undefined : last
}

/** Reads `file line 5 > eval:1:1` of Firefox, which is line 5 of the file, without a column. */
function readEval(text: string): Omit<Call, 'function'> | undefined {
  const evalAt = text.indexOf(' > ')
  const lineAt = evalAt < 0 ? -1 : text.lastIndexOf(' line ', evalAt)
  if (lineAt < 0) return undefined
  const line = wholeNumber(text.slice(lineAt + 6, evalAt))
  return line === undefined ? undefined : { file: text.slice(0, lineAt), line, column: 0 }
}

/** Whether a text is the file of a script, and not a host and its port. */
function isScript(file: string, alone: boolean): boolean {
  if (file === 'debugger eval code') return true
  if (/\s/.test(file)) return false
  return file.includes('/') || (!alone && /(?:\.[cm]?[jt]sx?|bundle|\.hbc|>)$/.test(file))
}
