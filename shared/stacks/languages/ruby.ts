import { isInApp } from '../in-app.ts'
import { cutMessage, MAX_FRAMES, readHeader, wholeNumber } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'

/** A line of a backtrace. */
interface BacktraceLine {
  readonly frame: StackFrame
  /** `from`: a caller, as `full_message` prints it. `numbered`: the same, the outermost first. */
  readonly kind: 'bare' | 'from' | 'numbered'
  /** The text behind the frame: the message of the exception. */
  readonly message: string | undefined
}

/** An exception that is being read. */
interface OpenLink {
  readonly header: string[]
  readonly frames: StackFrame[]
}

/**
 * Reads a stack of Ruby: `full_message` in both orders and with causes, or lines of `backtrace`. Ruby writes names as 'User#load'
 * since 3.4, and as `load' before.
 */
export function readRuby(lines: readonly string[]): readonly StackLink[] | undefined {
  if (!lines.some(line => line.includes(':in '))) return undefined
  const read = lines.map(readLine)
  const isNumbered = read.some(line => line?.kind === 'numbered')
  const hasCallers = read.some(line => line?.kind === 'from' || hasType(line?.message ?? ''))
  const links = isNumbered ? reversed(lines, read) : hasCallers ? fullMessage(lines, read) : bare(lines, read)
  if (links.every(({ frames }) => frames.length === 0)) return undefined
  return links.map(({ header, frames }, i) => ({
    ...(i > 0 && { relation: 'cause' as const }),
    ...readMessage(header),
    frames,
  }))
}

type ReadLines = readonly (BacktraceLine | undefined)[]

/** Reads exceptions with the frame that raised in the line of the message, and its callers below. */
function fullMessage(lines: readonly string[], read: ReadLines): OpenLink[] {
  const links: OpenLink[] = []
  let inMessage = false
  for (const [i, line] of lines.entries()) {
    const { frame, kind, message } = read[i] ?? {}
    const last = links.at(-1)
    if (frame !== undefined && message !== undefined && (!inMessage || hasType(message))) {
      links.push({ header: [message], frames: [frame] })
      inMessage = true
    } else if (frame !== undefined && kind === 'from') {
      inMessage = false
      if (last === undefined) links.push({ header: [], frames: [frame] })
      else if (last.frames.length < MAX_FRAMES) last.frames.push(frame)
    } else if (inMessage) last?.header.push(line)
  }
  return links
}

/** Reads exceptions whose callers are above the message, with the cause before the exception that was reported. */
function reversed(lines: readonly string[], read: ReadLines): OpenLink[] {
  const links: OpenLink[] = []
  let callers: StackFrame[] = []
  for (const [i, line] of lines.entries()) {
    const { frame, kind, message } = read[i] ?? {}
    if (frame !== undefined && kind === 'numbered') callers.push(frame)
    else if (frame !== undefined && message !== undefined && (callers.length > 0 || hasType(message))) {
      links.push({ header: [message], frames: [...callers, frame].slice(-MAX_FRAMES).reverse() })
      callers = []
    } else if (callers.length === 0) links.at(-1)?.header.push(line)
  }
  return links.reverse()
}

/** Reads the lines of a backtrace, and above them the message. */
function bare(lines: readonly string[], read: ReadLines): OpenLink[] {
  const link: OpenLink = { header: [], frames: [] }
  for (const [i, line] of lines.entries()) {
    const { frame, message } = read[i] ?? {}
    if (frame === undefined) {
      if (link.frames.length === 0 && line !== '') link.header.push(line.trim())
    } else if (link.frames.length < MAX_FRAMES) link.frames.push(frame)
    if (message !== undefined && link.header.length === 0) link.header.push(message)
  }
  return [link]
}

function readLine(line: string): BacktraceLine | undefined {
  const text = line.trim()
  const from = /^(?:(\d{1,6}): )?from /.exec(text)
  const own = from === null ? text : text.slice(from[0].length)
  const at = own.indexOf(':in ')
  const quote = own[at + 4]
  if (at < 0 || (quote !== "'" && quote !== '`')) return undefined
  const colon = own.lastIndexOf(':', at - 1)
  const stated = colon <= 0 ? undefined : wholeNumber(own.slice(colon + 1, at))
  // A caller in the runtime can have no line: `from -e:in 'Kernel.eval'`.
  const number = stated ?? (from === null ? undefined : 0)
  const file = own.slice(0, stated === undefined ? at : colon)
  const end = nameEnd(own, at + 5)
  if (number === undefined || end < 0 || !isFile(file)) return undefined
  const call = { function: own.slice(at + 5, end), module: '', file }
  const shown = own.slice(0, end + 1)
  const frame = { ...call, line: number, column: 0, inApp: isInApp('ruby', call), text: from === null ? shown : text }
  const message = end + 1 === own.length || from !== null ? undefined : own.slice(end + 3)
  return { frame, kind: from === null ? 'bare' : from[1] === undefined ? 'from' : 'numbered', message }
}

/** Finds the quote after a name. The line ends there, or the message follows. */
function nameEnd(line: string, start: number): number {
  const end = line.indexOf("': ", start)
  return end >= 0 ? end : line.endsWith("'") && line.length > start ? line.length - 1 : -1
}

/** Whether a text is a file: `/srv/a.rb`, `(irb)`, `<internal:kernel>` or `-e`. A name without a folder has no blanks. */
function isFile(text: string): boolean {
  return !/\s/.test(text) || /^[(/.]|^[A-Za-z]:[/\\]/.test(text)
}

function hasType(message: string): boolean {
  return typeOf(message) !== undefined
}

/** Returns the class that ends the first line of a message: `no such user (ArgumentError)`. */
function typeOf(line: string): string | undefined {
  const open = line.endsWith(')') ? line.lastIndexOf(' (') : -1
  const type = line.slice(open + 2, -1)
  return open >= 0 && /^\p{Lu}[\p{L}\p{N}_:]*$/u.test(type) ? type : undefined
}

function readMessage(header: readonly string[]): Pick<StackLink, 'type' | 'message'> {
  const [first = '', ...rest] = header
  const type = typeOf(first)
  if (type === undefined) return readHeader(header)
  return { type, message: cutMessage([first.slice(0, -type.length - 3), ...rest].join('\n').trim()) }
}
