import { isInApp } from '../in-app.ts'
import { cutMessage, indentOf, MAX_FRAMES, readHeader, wholeNumber } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'

/** An exception that is being read. */
interface OpenLink {
  readonly relation: StackLink['relation']
  readonly header: string[]
  frames: StackFrame[]
}

/** `System.IO.IOException: message`, `System.Net.Sockets.SocketException (111): message` or the name alone. */
const EXCEPTION = /^[\p{L}_][\p{L}\p{N}_.+`]*(?: \((?:0x)?[0-9A-Fa-f]{1,10}\))?(?::|$)/u

/** The marks at the start of an inner exception. Aggregates number theirs. */
const INNER = /^---> (?:\([^()]{1,60}#(\d{1,9})\) ?)?(.*)$/

/** Reads stacks of .NET and Mono in any language, with inner exceptions and the members of aggregates. */
export function readDotnet(lines: readonly string[]): readonly StackLink[] | undefined {
  const reader = new DotnetReader()
  for (const line of lines) reader.read(line)
  return reader.links()
}

class DotnetReader {
  readonly #links: OpenLink[] = []
  /** The exceptions whose frames follow, the innermost last. */
  readonly #open: OpenLink[] = []
  /** Lines after frames, which can be the rest of a message. */
  #rest: string[] = []

  constructor() {
    this.#push(undefined, '')
  }

  read(line: string): void {
    const text = line.trim()
    const isEnd = text.endsWith('<---')
    const own = isEnd ? text.slice(0, -4).trimEnd() : text
    const frame = readDotnetFrame(own, indentOf(line))
    if (frame !== undefined) this.#addFrame(frame)
    else if (own.startsWith('--- ') && own.endsWith('---')) this.#readMark(own, indentOf(line))
    else if (!this.#readInner(own)) this.#readText(own)
    if (isEnd) this.#close()
  }

  links(): readonly StackLink[] | undefined {
    if (this.#links.every(({ frames }) => frames.length === 0)) return undefined
    const read = this.#links.map(linkOf)
    const causes = new Set(read.filter(({ relation }) => relation === 'cause').map(keyOf))
    // .NET Framework prints the first member of an aggregate twice.
    return read.filter(link => link.relation !== 'member' || !causes.has(keyOf(link)))
  }

  #push(relation: StackLink['relation'], header: string): void {
    const link = { relation, header: header === '' ? [] : [header], frames: [] }
    this.#links.push(link)
    this.#open.push(link)
    this.#rest = []
  }

  #close(): void {
    if (this.#open.length > 1) this.#open.pop()
    this.#rest = []
  }

  /** Adds a frame. If lines of no stack are above it, the frames above these are of the message. */
  #addFrame(frame: StackFrame): void {
    const link = this.#open.at(-1)
    if (link === undefined) return
    if (this.#rest.length > 0) {
      link.header.push(...link.frames.map(({ text }) => text), ...this.#rest)
      link.frames = []
      this.#rest = []
    }
    if (link.frames.length < MAX_FRAMES) link.frames.push(frame)
  }

  /** Only the mark at the end of an inner exception is indented. The other one is between the parts of an asynchronous call. */
  #readMark(text: string, indent: number): void {
    const isInner = /inner|intern/i.test(text) || (indent > 0 && !/previous/.test(text))
    if (isInner) this.#close()
    this.#rest = []
  }

  #readInner(text: string): boolean {
    const [, number, header = ''] = INNER.exec(text) ?? []
    if (!EXCEPTION.test(header)) return false
    if (number !== undefined) while (this.#open.length > 1) this.#open.pop()
    this.#push(number === undefined ? 'cause' : 'member', '')
    this.#readText(header)
    return true
  }

  /** Reads a line of a message. .NET Framework prints all exceptions in one line: `A: outer ---> B: inner`. */
  #readText(text: string): void {
    const link = this.#open.at(-1)
    if (link === undefined) return
    if (link.frames.length > 0) {
      if (text !== '' && !/^(?:\.\.\.|…)/.test(text)) this.#rest.push(text)
      return
    }
    const [first = '', ...inner] = text.split(' ---> ')
    link.header.push(first)
    for (const each of inner) {
      if (EXCEPTION.test(each)) this.#push('cause', each)
      else this.#open.at(-1)?.header.push(each)
    }
  }
}

function linkOf({ relation, header, frames }: OpenLink): StackLink {
  return { ...(relation && { relation }), ...readMessage(header), frames }
}

function keyOf({ type, message, frames }: StackLink): string {
  return JSON.stringify([type, message, frames[0]?.text])
}

/** Reads the type and the message from the line on that begins with a class in a namespace. */
function readMessage(lines: readonly string[]): Pick<StackLink, 'type' | 'message'> {
  const header = lines.map(line => line.replace(/^[\p{L} ]{1,40}[.:] (?=[\p{L}_][\p{L}\p{N}_+`]*\.\S)/u, ''))
  const named = header.findIndex(line => EXCEPTION.exec(line)?.[0].includes('.') === true)
  const [first = '', ...rest] = header.slice(Math.max(named, 0))
  if (named < 0 && !EXCEPTION.test(first)) return { type: '', message: cutMessage(header.join('\n').trim()) }
  return readHeader([first.replace(/^(\S+) \([^)]*\)(?=:|$)/, '$1'), ...rest])
}

/** Reads `at Shop.Cart.Total(Int32 last) in /src/Cart.cs:line 12`, in any language. */
function readDotnetFrame(shown: string, indent: number): StackFrame | undefined {
  const text = ofMono(shown)
  const blank = text.indexOf(' ')
  const word = text.slice(0, Math.max(blank, 0))
  // `at` in the languages of .NET. A word of a sentence is not indented so.
  if (word !== 'at' && (indent < 2 || !/^[\p{L}\p{M}]{1,10}:?$/u.test(word))) return undefined
  const call = text.slice(blank + 1).trimStart()
  const open = call.indexOf('(')
  const close = call.indexOf(')', open + 1)
  const name = call.slice(0, Math.max(open, 0)).trimEnd()
  if (
    close < 0 ||
    !isMethod(name) ||
    !call
      .slice(open + 1, close)
      .split(',')
      .every(isParameter)
  )
    return undefined
  const rest = call.slice(close + 1)
  // Mono has a blank before the parenthesis, and an offset behind. JavaScript has the blank only.
  if (name.length !== open && !rest.startsWith(' [0x')) return undefined
  const location = readLocation(rest.replace(/^ \[0x[0-9a-f]+\]/, ''))
  if (location === undefined) return undefined
  const parts = { function: name, module: '', file: location.file }
  return { ...parts, line: location.line, column: 0, inApp: isInApp('dotnet', parts), text: shown }
}

/** Returns a frame of Unity as Mono writes it: `Cart.Total () (at Assets/Cart.cs:12)`. */
function ofMono(text: string): string {
  const at = text.endsWith(')') ? text.lastIndexOf(') (at ') : -1
  return at < 0 ? text : `at ${text.slice(0, at + 1)} [0x0] in ${text.slice(at + 6, -1)}`
}

function isMethod(name: string): boolean {
  return (name.includes('.') || name.startsWith('lambda_method')) && !/[\s/\\:"']/.test(name.replace(/\[.*$/, ''))
}

/** Whether a text is a type and a name, a type, or nothing. The file and the line of a frame of Java are neither. */
function isParameter(text: string): boolean {
  const parameter = text.trim()
  if (/^(?:Native Method|Unknown Source|SourceFile|<generated>)$|\.\p{Ll}+$/u.test(parameter)) return false
  return /^(?:[^\s:/\\"'=]+(?: [^\s:/\\"'=]+){0,2})?$/.test(parameter)
}

/** Reads nothing, an offset (` + 0x1d`, ` in Shop.dll:token 0x60001+0x2`), or ` in /src/Cart.cs:line 12` in any language. */
function readLocation(text: string): { file: string; line: number } | undefined {
  if (text === '' || text.startsWith(' + 0x') || text.includes(':token 0x')) return { file: '', line: 0 }
  const blank = text.indexOf(' ', 1)
  if (!text.startsWith(' ') || blank < 0) return undefined
  const colon = text.lastIndexOf(':')
  const digits = text
    .slice(colon + 1)
    .replace(/^\D{1,10}/, '')
    .replace(/\.$/, '')
  const line = colon < blank ? undefined : wholeNumber(digits)
  if (line === undefined) return undefined
  const file = text.slice(blank + 1, colon).trim()
  return file.startsWith('<') ? { file: '', line: 0 } : { file, line }
}
