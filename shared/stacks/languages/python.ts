import { isInApp } from '../in-app.ts'
import { indentOf, MAX_FRAMES, readHeader, wholeNumber } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'

type Relation = NonNullable<StackLink['relation']>

/** A traceback that is being read, its frames outermost first. */
interface Traceback {
  readonly frames: StackFrame[]
  readonly header: string[]
  /** Exceptions of a group. */
  readonly members: Sequence[]
  /** How it belongs to the traceback after it. Undefined if nothing connects both. */
  connector?: Relation
}

/** The tracebacks of a chain. Python prints the exception that was reported last. */
type Sequence = Traceback[]

const CONNECTORS: ReadonlyMap<string, Relation> = new Map([
  ['The above exception was the direct cause of the following exception:', 'cause'],
  ['During handling of the above exception, another exception occurred:', 'context'],
])

/** `shop.NotFound: no cart`, `KeyboardInterrupt` or `RayTaskError(ValueError): …`. A mark where text was cut is different. */
const EXCEPTION = /^[\p{L}_][\p{L}\p{N}_.<>]*(?:\(\w+\))?(?::|$)/u

/** Maximum depth of groups in groups. */
const MAX_DEPTH = 64

/** Reads tracebacks of Python with their chains and groups. */
export function readPython(lines: readonly string[]): readonly StackLink[] | undefined {
  if (!lines.some(line => line.includes('File "'))) return undefined
  const reader = new TracebackReader()
  for (const line of lines) reader.read(line)
  const links: StackLink[] = []
  collect(reader.root, undefined, links)
  return links.some(({ frames }) => frames.length > 0) ? links : undefined
}

/** Puts the exception that was reported first, then its members, then the chain before it. */
function collect(sequence: Sequence, relation: Relation | undefined, links: StackLink[]): void {
  let end = sequence.length
  let own = relation
  while (end > 0) {
    let start = end - 1
    // Without a connector, the message of the first has the text of the following ones.
    while (start > 0 && sequence[start - 1]?.connector === undefined) start--
    for (const traceback of sequence.slice(start, end)) {
      links.push(linkOf(traceback, own))
      for (const member of traceback.members) collect(member, 'member', links)
      own = 'cause'
    }
    own = sequence[start - 1]?.connector
    end = start
  }
}

function linkOf({ frames, header }: Traceback, relation: Relation | undefined): StackLink {
  const message = header.filter(line => line !== '"""')
  return { ...(relation && { relation }), ...readHeader(message), frames: frames.slice(-MAX_FRAMES).reverse() }
}

/** Reads line after line. Lines of a group have a vertical bar, which is further right for groups in groups. */
class TracebackReader {
  readonly root: Sequence = []
  /** The sequences that are open, by the place of their bars. */
  readonly #open: { readonly bar: number; readonly sequence: Sequence }[] = [{ bar: 0, sequence: this.root }]
  /** Indentation of a whole text. */
  #base = 0
  #isGroup = false

  read(line: string): void {
    const bar = indentOf(line)
    const sign = line[bar]
    if (sign === '+' && line.startsWith('+ Exception Group Traceback (', bar)) {
      this.#isGroup = true
      this.#add(this.#at(bar), newTraceback())
    } else if (this.#isGroup && sign === '+') this.#readBorder(line, bar)
    else if (this.#isGroup && sign === '|' && bar > this.#base) this.#readLine(this.#at(bar), line.slice(bar + 2))
    else this.#readPlain(line, bar)
  }

  /** Reads `+-+---------------- 1 ----------------`, `+---------------- 2 ----------------` or a line without a number. */
  #readBorder(line: string, bar: number): void {
    if (!/ \d+ -+$/.test(line) && !line.endsWith(' ... -----')) return
    const opens = line.startsWith('+-+-', bar)
    const inner = opens ? bar + 2 : bar
    const parent = this.#at(inner - 2).at(-1)
    if (parent === undefined || this.#open.length > MAX_DEPTH) return
    const sequence: Sequence = []
    parent.members.push(sequence)
    this.#open.push({ bar: inner, sequence })
  }

  /** Returns the open sequence whose bars are here, and closes those further right. A group at the top has its bar at 2. */
  #at(bar: number): Sequence {
    while (this.#open.length > 1 && (this.#open.at(-1)?.bar ?? 0) > bar) this.#open.pop()
    return this.#open.at(-1)?.sequence ?? this.root
  }

  #readPlain(line: string, indent: number): void {
    const isHeading =
      /^(?:Traceback|Stack) \(most recent call last\):$/.test(line.trim()) ||
      line.endsWith(': Traceback (most recent call last):')
    if (isHeading && !(this.root.at(-1)?.header.length === 0)) this.#base = indent
    const isFirst = this.root.length === 0 && line.startsWith('File "')
    const own = isFirst ? `  ${line}` : line.slice(Math.min(indent, this.#base))
    if (this.root.length > 0 || isHeading || readFrame(own) !== undefined) this.#readLine(this.#at(0), own)
  }

  #readLine(sequence: Sequence, line: string): void {
    const last = sequence.at(-1)
    const connector = CONNECTORS.get(line)
    if (connector !== undefined && last !== undefined) last.connector = connector
    else if (line.endsWith('Traceback (most recent call last):') && indentOf(line) === 0)
      this.#add(sequence, newTraceback())
    else if (line === 'Stack (most recent call last):') this.#add(sequence, newTraceback())
    else if (line !== '' || (last?.connector === undefined && last?.header.length !== 0))
      this.#readContent(sequence, line)
  }

  /** Frames are indented by two, source lines by more. The first line that names an exception begins the message. */
  #readContent(sequence: Sequence, line: string): void {
    const last = sequence.at(-1)
    const open = last?.connector === undefined ? last : undefined
    if (open !== undefined && open.header.length > 0) {
      open.header.push(line)
      return
    }
    const frame = readFrame(line)
    const isException = EXCEPTION.test(line)
    if (frame === undefined && !isException) return
    const traceback = open ?? this.#add(sequence, newTraceback())
    if (frame === undefined) traceback.header.push(line)
    else traceback.frames.push(frame)
  }

  #add(sequence: Sequence, traceback: Traceback): Traceback {
    sequence.push(traceback)
    return traceback
  }
}

function newTraceback(): Traceback {
  return { frames: [], header: [], members: [] }
}

/** Reads `  File "/srv/app/cart.py", line 12, in total`. The place of a syntax error has no function. */
function readFrame(line: string): StackFrame | undefined {
  if (!line.startsWith('  File "')) return undefined
  const end = line.indexOf('", line ', 8)
  if (end < 0) return undefined
  const comma = line.indexOf(', in ', end + 8)
  const number = wholeNumber(line.slice(end + 8, comma < 0 ? line.length : comma))
  if (number === undefined) return undefined
  const call = { function: comma < 0 ? '' : line.slice(comma + 5), module: '', file: line.slice(8, end) }
  return { ...call, line: number, column: 0, inApp: isInApp('python', call), text: line.trim() }
}
