import { isInApp } from '../in-app.ts'
import { indentOf, MAX_FRAMES, readHeader } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'
import { readGeckoFrame } from './gecko-frame.ts'
import { type Call, readV8Frame } from './v8-frame.ts'

/** An exception that is being read. */
interface OpenLink {
  readonly relation?: 'cause' | 'member'
  readonly header: string[]
  readonly frames: StackFrame[]
  /** Whether the message has ended, though no frame follows. */
  isWhole?: boolean
  /** Indentation of its frames, undefined before the first. */
  indent?: number
}

/**
 * Reads a stack of JavaScript: of V8 (Chrome, Node, Deno), of Hermes, of Gecko (Firefox) and of JavaScriptCore (Safari, Bun), as
 * it is or as `util.inspect` prints it, with its causes and the members of an AggregateError.
 */
export function readJavascript(lines: readonly string[]): readonly StackLink[] | undefined {
  const isV8 = v8Lines(lines)
  const calls = isV8.size > 0 ? isV8 : geckoLines(lines)
  if (calls.size === 0) return undefined
  return readLinks(lines, calls).map(({ relation, header, frames }) => ({
    ...(relation && { relation }),
    ...readHeader(withoutSource(header).map(stripUncaught), isErrorName),
    frames,
  }))
}

/** Finds the frames of V8. A line that is not indented is part of the message if frames are, unless it is the first. */
function v8Lines(lines: readonly string[]): ReadonlyMap<number, Call> {
  const calls = new Map<number, Call>()
  for (const [i, line] of lines.entries()) {
    const call = readV8Frame(frameText(line))
    if (call !== undefined) calls.set(i, call)
  }
  const indented = (i: number) => indentOf(lines[i] ?? '') > 0
  if ([...calls.keys()].some(indented)) for (const i of calls.keys()) if (i > 0 && !indented(i)) calls.delete(i)
  return calls
}

/** Finds the frames of Gecko and JavaScriptCore. A name without a place is a frame only below one that has a place. */
function geckoLines(lines: readonly string[]): ReadonlyMap<number, Call> {
  const calls = new Map<number, Call>()
  for (const [i, line] of lines.entries()) {
    const call = readGeckoFrame(line.trim())
    if (call !== undefined && (calls.has(i - 1) || call.file !== '')) calls.set(i, call)
  }
  const placed = [...calls.values()].some(({ column, line }) => column > 0 || line > 0)
  return placed ? calls : new Map()
}

/** Removes the indentation, and the brace or comma that `util.inspect` writes behind the last frame. */
function frameText(line: string): string {
  const text = line.trim()
  return text.endsWith(' {') ? text.slice(0, -2).trimEnd() : text.endsWith(',') ? text.slice(0, -1) : text
}

/**
 * Joins the frames to exceptions. An exception within another one is indented by more, and begins with `[cause]: ` or another
 * property, with `Caused by: `, or as a member of `[errors]: [`.
 */
function readLinks(lines: readonly string[], calls: ReadonlyMap<number, Call>): OpenLink[] {
  const links: OpenLink[] = [{ header: [], frames: [] }]
  const last = () => links[links.length - 1] as OpenLink
  /** Indentations of the members in the arrays that are open. */
  const arrays: number[] = []
  let property: string | undefined
  for (const [i, line] of lines.entries()) {
    const call = calls.get(i)
    const indent = indentOf(line)
    const text = line.trim()
    if (call !== undefined) {
      const link = linkOfFrame(links, indent, property)
      property = undefined
      if (link !== undefined && link.frames.length < MAX_FRAMES) link.frames.push(frameOf(call, frameText(line)))
      continue
    }
    if (text === '') continue
    while (indent < (arrays.at(-1) ?? 0)) arrays.pop()
    const cause = textOfCause(text)
    if (text === '[errors]: [' || text === 'errors: [') arrays.push(indent + 2)
    else if (cause !== undefined) links.push({ relation: 'cause', ...startOf(cause) })
    else if (indent === arrays.at(-1) && startsError(text)) links.push({ relation: 'member', ...startOf(text) })
    else if (last().frames.length === 0) addToHeader(last(), text)
    else if (indent > 0) property = textOfProperty(text) ?? property
  }
  return links
}

/** Finds the exception of a frame: the last one, or if the frame is indented otherwise, one above or that of a property. */
function linkOfFrame(links: OpenLink[], indent: number, property: string | undefined): OpenLink | undefined {
  const link = links[links.length - 1]
  if (link === undefined || link.indent === indent) return link
  if (link.indent === undefined || (link.indent === 0 && link.frames.length === 1)) {
    link.indent = indent
    return link
  }
  if (indent < link.indent) return links.findLast(one => one.indent === indent) ?? link
  if (property === undefined) return undefined
  const inner: OpenLink = { relation: 'cause', header: [property], frames: [], indent }
  links.push(inner)
  return inner
}

function frameOf(call: Call, text: string): StackFrame {
  return { ...call, module: '', inApp: isInApp('javascript', { ...call, module: '' }), text }
}

/** Returns the exception behind `[cause]: `, `cause: ` or `Caused by: `. */
function textOfCause(text: string): string | undefined {
  for (const prefix of ['[cause]: ', 'caused by: ', 'cause: ']) {
    if (text.slice(0, prefix.length).toLowerCase() !== prefix) continue
    const rest = text.slice(prefix.length)
    return startsError(rest) ? rest : undefined
  }
  return undefined
}

/** Returns the exception in a line of a property: `parent: Error: no table`. */
function textOfProperty(text: string): string | undefined {
  const colon = text.indexOf(': ')
  if (colon < 0 || !/^[\w$'[\]]+$/.test(text.slice(0, colon))) return undefined
  const rest = text.slice(colon + 2)
  return startsError(rest) ? rest : undefined
}

function startOf(text: string): Pick<OpenLink, 'header' | 'frames' | 'isWhole'> {
  const link: OpenLink = { header: [], frames: [] }
  addToHeader(link, text)
  return link
}

/** Adds a line of the message. `util.inspect` writes brackets around an error without a stack. */
function addToHeader(link: OpenLink, text: string): void {
  if (link.isWhole) return
  const own = frameText(text)
  link.isWhole = link.header.length === 0 && own.startsWith('[') && own.endsWith(']')
  link.header.push(link.isWhole ? own.slice(1, -1) : text)
}

function startsError(text: string): boolean {
  const own = text.startsWith('[') ? text.slice(1) : text
  const { type } = readHeader([own.replace(/[\]{},\s]+$/, '')], isErrorName)
  return /^\p{Lu}/u.test(type)
}

/** Also reads the code of an error of Node: `TypeError [ERR_INVALID_ARG_TYPE]`. */
function isErrorName(text: string): boolean {
  return text.length <= 256 && /^[\p{L}_$][\p{L}\p{N}_$.]*(?: \[\w+\])?$/u.test(text)
}

/** Removes the source line above the error that Node prints before it ends. */
function withoutSource(header: string[]): string[] {
  const caret = header.findIndex(line => /^\^+$/.test(line))
  return caret > 0 && /:\d+$/.test(header[0] ?? '') ? header.slice(caret + 1) : header
}

function stripUncaught(line: string, index: number): string {
  if (index > 0) return line
  const own = line.startsWith('Uncaught ') ? line.slice(9) : line
  return own.startsWith('(in promise) ') ? own.slice(13) : own
}
