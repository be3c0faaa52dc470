import { isInApp } from '../in-app.ts'
import { cutMessage, indentOf, MAX_FRAMES, readHeader, wholeNumber } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'

/** An exception that is being read. */
interface OpenLink {
  readonly relation: StackLink['relation']
  readonly header: string[]
  frames: StackFrame[]
}

/** An exception with its causes. All of them are indented alike. */
interface Chain {
  readonly indent: number
  readonly links: OpenLink[]
}

/** The words that begin an exception, and how it belongs to others. `Wrapped by` follows its cause. */
const HEADING = /^(Caused by|Suppressed|Wrapped by): (\S.*)$/

/** Lines between frames that belong to a stack: what was left out, locks, and the start of coroutines. */
const BETWEEN_FRAMES = /^(?:\.\.\. |… |- |\[CIRCULAR|\(Coroutine |Caused by: \[CIRCULAR|$)/

/** Reads stacks of Java, Kotlin, Scala, Groovy, Clojure and Android, with causes first, then suppressed exceptions. */
export function readJava(lines: readonly string[]): readonly StackLink[] | undefined {
  const reader = new JavaReader()
  for (const line of lines) if (!reader.read(line)) break
  return reader.links()
}

class JavaReader {
  readonly #root: Chain = { indent: 0, links: [{ relation: undefined, header: [], frames: [] }] }
  readonly #chains: Chain[] = [this.#root]
  /** The chains that the next line can continue. */
  readonly #open: Chain[] = [this.#root]
  #last = this.#root.links[0] as OpenLink
  #isRootFirst = false
  /** Lines after the frames of the last exception, which can be the rest of its message. */
  #rest: string[] = []

  /** Reads a line. Returns false if another stack begins. */
  read(line: string): boolean {
    const text = line.trim()
    const frame = readJavaFrame(text)
    if (frame !== undefined) this.#addFrame(frame)
    else if (!this.#openLink(line, text)) {
      if (this.#last.frames.length === 0) this.#last.header.push(line)
      else if (isQualified(text) && indentOf(line) === 0) return false
      else if (!BETWEEN_FRAMES.test(text)) this.#rest.push(line)
    }
    return true
  }

  links(): readonly StackLink[] | undefined {
    const root = this.#isRootFirst ? this.#root.links.toReversed() : this.#root.links
    const suppressed = this.#chains.slice(1).flatMap(({ links }) => links)
    if (![...root, ...suppressed].some(({ frames }) => frames.length > 0)) return undefined
    return [
      ...root.map((link, i) => linkOf(link, i === 0 ? undefined : 'cause')),
      // The cause of a suppressed exception was suppressed with it.
      ...suppressed.map(link => linkOf(link, 'suppressed')),
    ]
  }

  /** Adds a frame. If lines of no stack are above it, the frames above these are of the message. */
  #addFrame(frame: StackFrame): void {
    const link = this.#last
    if (this.#rest.length > 0) {
      link.header.push(...link.frames.map(({ text }) => text), ...this.#rest)
      link.frames = []
      this.#rest = []
    }
    if (link.frames.length < MAX_FRAMES) link.frames.push(frame)
  }

  /** Opens an exception in the chain of the same indentation. */
  #openLink(line: string, text: string): boolean {
    const [, word, header = ''] = HEADING.exec(text) ?? []
    if (word === undefined || classAt(header) === undefined) return false
    const isSuppressed = word === 'Suppressed'
    const indent = indentOf(line)
    const closes = (chain: Chain) => (isSuppressed ? chain.indent >= indent : chain.indent > indent)
    while (this.#open.length > 1 && closes(this.#open.at(-1) ?? this.#root)) this.#open.pop()
    const link: OpenLink = { relation: isSuppressed ? 'suppressed' : 'cause', header: [header], frames: [] }
    if (isSuppressed) {
      const chain = { indent, links: [link] }
      this.#chains.push(chain)
      this.#open.push(chain)
    } else (this.#open.at(-1) ?? this.#root).links.push(link)
    if (word === 'Wrapped by') this.#isRootFirst = true
    this.#last = link
    this.#rest = []
    return true
  }
}

function linkOf({ header, frames }: OpenLink, relation: StackLink['relation']): StackLink {
  return { ...(relation && { relation }), ...readMessage(header), frames }
}

/** Reads the type and the message from the line on that begins with a class. Lines of a log can be above. */
function readMessage(lines: readonly string[]): Pick<StackLink, 'type' | 'message'> {
  const header = lines.map(line => line.replace(/^\s*Exception in thread "[^"]*" /, ''))
  const named = header.findIndex(isQualified)
  const [first = '', ...rest] = header.slice(Math.max(named, 0))
  if (classAt(first) !== undefined) return readHeader([first, ...rest])
  return { type: '', message: cutMessage(header.join('\n').trim()) }
}

/** Whether a line begins with a class in a package. */
function isQualified(line: string): boolean {
  return classAt(line)?.includes('.') === true
}

/** Returns the class at the start of `com.shop.Declined: no card`, or of a line without a message. */
function classAt(line: string): string | undefined {
  const colon = line.indexOf(':')
  const name = colon < 0 ? line : line.slice(0, colon)
  const own = name.slice(name.lastIndexOf('.') + 1)
  return /^[\p{Lu}_$]/u.test(own) && /^[\p{L}\p{N}_$.]+$/u.test(name) ? name : undefined
}

/** Reads `at java.base@17.0.1/java.util.Objects.requireNonNull(Objects.java:208) ~[?:?]`. */
function readJavaFrame(text: string): StackFrame | undefined {
  if (!text.startsWith('at ')) return undefined
  const call = withoutArchive(text.slice(3).trimEnd())
  const open = call.endsWith(')') ? call.lastIndexOf('(') : -1
  const location = open < 0 ? undefined : readLocation(call.slice(open + 1, -1))
  if (location === undefined) return undefined
  const name = call.slice(0, open)
  const slash = endOfModule(name)
  const own = name.slice(slash + 1)
  // A method of Kotlin can have blanks. A space before the parenthesis is of another language.
  if (!own.includes('.') || name !== name.trim() || /[()[\]@]/.test(own)) return undefined
  const module = name.slice(0, Math.max(slash, 0))
  const parts = { function: own, module: module.slice(module.lastIndexOf('/') + 1), file: location.file }
  return { ...parts, line: location.line, column: 0, inApp: isInApp('java', parts), text }
}

/** Removes the archive that Logback and Log4j add: `~[shop-1.0.jar:1.0]` or `[classes/:?]`. */
function withoutArchive(call: string): string {
  if (!call.endsWith(']')) return call
  const open = call.lastIndexOf(' [') + 1 || call.lastIndexOf(' ~[') + 1
  return open === 0 ? call : call.slice(0, open - 1)
}

/** Finds the last slash of `app//`, `java.base/` or `loader/module@1/`. The name of a hidden class ends with one and a number. */
function endOfModule(name: string): number {
  const slash = name.lastIndexOf('/')
  return slash > 0 && /^(?:0x|\d)/.test(name.slice(slash + 1)) ? name.lastIndexOf('/', slash - 1) : slash
}

/** Reads `Cart.java:12`, `Cart.kt`, `SourceFile:3`, `Native Method` or `Unknown Source:4`. */
function readLocation(text: string): { file: string; line: number } | undefined {
  const colon = text.lastIndexOf(':')
  const line = colon < 0 ? undefined : wholeNumber(text.slice(colon + 1))
  if (colon >= 0 && line === undefined) return undefined
  const file = colon < 0 ? text : text.slice(0, colon)
  if (file.includes(':') || file.endsWith('.php')) return undefined
  return colon >= 0 || isSource(file) ? { file, line: line ?? 0 } : undefined
}

/** Whether a text without a line is a place: a file, or words of the virtual machine. */
function isSource(text: string): boolean {
  if (/^(?:Native Method|Unknown Source|SourceFile|Dynamic Method|<generated>|<unknown>|NO_SOURCE_FILE)$/.test(text)) {
    return true
  }
  return /^[\w$-]+\.(?:java|kts?|scala|groovy|cljc?|jsp)$/.test(text)
}
