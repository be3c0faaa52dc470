import { isInApp } from '../in-app.ts'
import { cutMessage, MAX_FRAMES, wholeNumber } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'

/** The location that a frame states. */
interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A part of a text: what an error is, its causes, its frames, or spans that it went through. */
type Part = 'message' | 'causes' | 'frames' | 'spans'

/** Reads panics with their backtraces, and errors of `anyhow` and `eyre` with causes. A frame is a function and its place below. */
export function readRust(lines: readonly string[]): readonly StackLink[] | undefined {
  const reader = new RustReader()
  for (const [i, line] of lines.entries()) if (!reader.read(line, lines[i + 1] ?? '')) break
  return reader.links()
}

class RustReader {
  readonly #message: string[] = []
  readonly #causes: string[][] = []
  readonly #frames: StackFrame[] = []
  #part: Part = 'message'
  #isPanic = false
  /** The place of the panic, which is the only frame where no backtrace was taken. */
  #panic: StackFrame | undefined
  #isPlaceOfLast = false

  /** Reads a line. Returns false if another stack begins. */
  read(line: string, next: string): boolean {
    const text = line.trim()
    const isPlaceOfLast = this.#isPlaceOfLast
    this.#isPlaceOfLast = false
    if (isPlaceOfLast && readPlaceLine(text) !== undefined) return true
    const part = partOf(text)
    if (part !== undefined) this.#part = part
    else if (isPanic(text)) {
      if (this.#frames.length > 0 || this.#isPanic) return false
      this.#readPanic(text)
    } else this.#readContent(text, next)
    return true
  }

  links(): readonly StackLink[] | undefined {
    const frames = this.#frames.length > 0 || this.#panic === undefined ? this.#frames : [this.#panic]
    if (frames.length === 0) return undefined
    const message = cutMessage(
      this.#message
        .join('\n')
        .trim()
        .replace(/^Error:\s+/, ''),
    )
    const causes = this.#causes.map(lines => ({
      relation: 'cause' as const,
      type: '',
      message: cutMessage(lines.join('\n').trim()),
      frames: [],
    }))
    return [{ type: this.#isPanic ? 'panic' : '', message, frames }, ...causes]
  }

  /** Reads `thread 'main' (17) panicked at src/main.rs:4:5:`, or with the message before the place. */
  #readPanic(text: string): void {
    this.#isPanic = true
    this.#part = 'message'
    this.#message.length = 0
    const own = text.slice(text.indexOf(PANICKED) + PANICKED.length)
    const quote = own.startsWith("'") ? own.lastIndexOf("', ") : -1
    if (quote > 0) this.#message.push(own.slice(1, quote))
    const place = readPlace(quote > 0 ? own.slice(quote + 3) : own.endsWith(':') ? own.slice(0, -1) : own)
    this.#panic = place && frameOf('', place, text)
  }

  #readContent(text: string, next: string): void {
    const numbered = /^\d{1,6}: +(\S.*)$/.exec(text)
    const content = numbered?.[1]
    const place = content === undefined ? undefined : readPlaceLine(next.trim())
    const isFrame = content !== undefined && this.#part !== 'spans' && (place !== undefined || this.#isFrame(content))
    if (isFrame) {
      const name = functionOf(content)
      const shown = place === undefined ? text : `${text}\n${next.trim()}`
      this.#isPlaceOfLast = place !== undefined
      if (this.#frames.length < MAX_FRAMES) this.#frames.push(frameOf(name, place ?? NO_PLACE, shown))
    } else if (this.#part === 'causes') this.#readCause(text, content)
    else if (this.#part === 'message') this.#readMessage(text, content)
  }

  /** Reads a line of the message. `eyre` numbers it with its causes. */
  #readMessage(text: string, content: string | undefined): void {
    if (content !== undefined && !this.#isPanic && /^(?:Error:)?$/.test(this.#message.join('').trim())) {
      this.#message.push(content)
      this.#part = 'causes'
    } else if (!text.startsWith('note: ')) this.#message.push(text)
  }

  #readCause(text: string, content: string | undefined): void {
    const last = this.#causes.at(-1)
    if (content !== undefined || last === undefined) {
      if (text !== '') this.#causes.push([content ?? text])
    } else last.push(text)
  }

  /** Whether a numbered line without a place is a frame: below the heading of a backtrace, or if it is a path. */
  #isFrame(content: string): boolean {
    if (this.#part === 'frames') return true
    if (this.#part !== 'message' || this.#isPanic) return false
    return /^0x[0-9a-f]+ - /.test(content) || (content.includes('::') && /^[\w&<>{}$#:]+$/.test(content))
  }
}

const NO_PLACE: Place = { file: '', line: 0, column: 0 }
const PANICKED = ' panicked at '

function isPanic(text: string): boolean {
  return text.startsWith("thread '") && text.includes(PANICKED)
}

/** Returns the part that a heading begins. `color-eyre` has headings within lines. */
function partOf(text: string): Part | undefined {
  if (text === 'Caused by:') return 'causes'
  if (/^(?:stack backtrace:|Stack backtrace:|Backtrace:|Location:|[━─-]+ BACKTRACE [━─-]+)$/.test(text)) return 'frames'
  return /^(?:[━─-]+ SPANTRACE [━─-]+|SpanTrace:)$/.test(text) ? 'spans' : undefined
}

function frameOf(name: string, place: Place, text: string): StackFrame {
  const parts = { function: name, module: '', file: place.file }
  return { ...parts, line: place.line, column: place.column, inApp: isInApp('rust', parts), text }
}

/** Removes the address, and the hashes of the build: `0x55b6 - std[e28293b1aa0f68bd]::fmt::h0123456789abcdef`. */
function functionOf(content: string): string {
  return content
    .replace(/^0x[0-9a-f]+ - /, '')
    .replace(/\[[0-9a-f]{16}\]/g, '')
    .replace(/::h[0-9a-f]{16}$/, '')
}

function readPlaceLine(text: string): Place | undefined {
  return text.startsWith('at ') ? readPlace(text.slice(3).trim()) : undefined
}

/** Reads `src/main.rs:4:5` or `src/main.rs:4`. */
function readPlace(text: string): Place | undefined {
  const last = text.lastIndexOf(':')
  const column = last < 0 ? undefined : wholeNumber(text.slice(last + 1))
  if (column === undefined) return undefined
  const first = text.lastIndexOf(':', last - 1)
  const line = first < 0 ? undefined : wholeNumber(text.slice(first + 1, last))
  const place =
    line === undefined
      ? { file: text.slice(0, last), line: column, column: 0 }
      : { file: text.slice(0, first), line, column }
  return /\.(?:rs|c|cc|cpp|s|S|asm)$/.test(place.file) ? place : undefined
}
