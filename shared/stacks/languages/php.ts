import { isInApp } from '../in-app.ts'
import { MAX_FRAMES, readHeader, wholeNumber } from '../lines.ts'
import type { StackFrame, StackLink } from '../stack.ts'

/** The function of a call, and the place of the call. */
interface Call {
  readonly function: string
  readonly file: string
  readonly line: number
  readonly text: string
}

/** An exception that is being read. */
interface OpenLink {
  readonly header: string[]
  readonly calls: Call[]
  /** Whether `Next ` begins it: the one before is its cause. */
  readonly isNext: boolean
}

/**
 * Reads a stack of PHP: of an error that was not caught, of `getTraceAsString`, of an exception as a string with the ones before
 * it, or of the OpenTelemetry SDK.
 */
export function readPhp(lines: readonly string[]): readonly StackLink[] | undefined {
  return readNative(lines) ?? readDotted(lines)
}

function readNative(lines: readonly string[]): StackLink[] | undefined {
  const links: OpenLink[] = []
  let header: string[] = []
  for (const line of lines) {
    const text = line.trim()
    const call = readCall(text)
    if (call === undefined) {
      if (header.length > 0 || text !== '') header.push(line)
      continue
    }
    if (call.isFirst || links.length === 0) {
      links.push({ header, calls: [], isNext: (header.find(isHeading) ?? '').startsWith('Next ') })
    }
    header = []
    links.at(-1)?.calls.push(call)
  }
  if (!links.some(({ calls }) => calls.some(isEvident))) return undefined
  // `Next ` follows the exception that it has as its cause. A log prints the exception that was reported first.
  const ordered = links.some(({ isNext }) => isNext) ? links.reverse() : links
  return ordered.map(linkOf)
}

/** A line that begins with `#` and a number can be of another format if it has neither file nor `{main}`. */
function isEvident(call: Call): boolean {
  return call.line > 0 || call.function === '{main}'
}

function isHeading(line: string): boolean {
  return line !== '' && !line.startsWith('  thrown in ')
}

function linkOf({ header, calls }: OpenLink, index: number): StackLink {
  const { place, ...own } = readHeading(header)
  return { ...(index > 0 && { relation: 'cause' as const }), ...own, frames: framesOf(calls, place) }
}

/**
 * A call names the place where it was made, so it lies in the function of the next call. If the place that threw is not known,
 * the first function has the place of its call.
 */
function framesOf(calls: readonly Call[], thrown: Pick<Call, 'file' | 'line'> | undefined): StackFrame[] {
  const frames: StackFrame[] = []
  for (const [i, call] of calls.slice(0, MAX_FRAMES).entries()) {
    const { file, line } = calls[i - 1] ?? thrown ?? call
    frames.push(frameOf({ ...call, file, line }))
  }
  return frames
}

function frameOf(call: Call): StackFrame {
  const { function: name, file, line, text } = call
  const inApp = isInApp('php', { function: name, module: '', file })
  return { function: name, module: '', file, line, column: 0, inApp, text }
}

/** Reads `#0 /srv/a.php(12): App\Cart->total('x')`, `#1 [internal function]: f()` or `#2 {main}`. */
function readCall(text: string): (Call & { readonly isFirst: boolean }) | undefined {
  const space = text.startsWith('#') ? text.indexOf(' ') : -1
  const index = space < 0 ? undefined : wholeNumber(text.slice(1, space))
  if (index === undefined) return undefined
  const call = text.slice(space + 1)
  const isFirst = index === 0
  if (call === '{main}') return { function: '{main}', file: '', line: 0, text, isFirst }
  const internal = '[internal function]: '
  if (call.startsWith(internal)) {
    const name = functionOf(call.slice(internal.length))
    return name === undefined ? undefined : { function: name, file: '', line: 0, text, isFirst }
  }
  const end = call.indexOf('): ')
  const open = end < 0 ? -1 : call.lastIndexOf('(', end)
  const line = open <= 0 ? undefined : wholeNumber(call.slice(open + 1, end))
  const name = functionOf(call.slice(end + 3))
  if (line === undefined || name === undefined) return undefined
  return { function: name, file: call.slice(0, open), line, text, isFirst }
}

/** Removes the arguments. A closure has its own place in braces since PHP 8.4: `{closure:App\Cart::total():12}`. */
function functionOf(call: string): string | undefined {
  const closure = call.indexOf('{closure:')
  const open = call.indexOf('(', closure < 0 ? 0 : call.indexOf('}', closure))
  return open < 0 ? undefined : call.slice(0, open)
}

/** Reads the lines above the calls: `PHP Fatal error:  Uncaught Type: message in /srv/a.php:3` and `Stack trace:`. */
function readHeading(
  lines: readonly string[],
): Pick<StackLink, 'type' | 'message'> & { place?: Pick<Call, 'file' | 'line'> } {
  const own = lines.filter((line, i) => !/^(?:Stack trace:|\[stacktrace\])$/.test(line) && (i > 0 || isHeading(line)))
  const start = own.findIndex(line => /^(?:Next |(?:PHP )?Fatal error: )/.test(line))
  const text = withoutPrefix(own.slice(Math.max(start, 0)).join('\n').trim())
  const at = text.lastIndexOf(' in ')
  const colon = text.lastIndexOf(':')
  const line = at < 0 || colon < at ? undefined : wholeNumber(text.slice(colon + 1))
  if (line === undefined) return readHeader([text])
  return { ...readHeader([text.slice(0, at)]), place: { file: text.slice(at + 4, colon), line } }
}

function withoutPrefix(text: string): string {
  return text
    .replace(/^(?:PHP )?Fatal error: {1,2}/, '')
    .replace(/^Uncaught /, '')
    .replace(/^Next /, '')
}

/** Reads the format of the OpenTelemetry SDK, `at App.Cart.total(Cart.php:12)`, with `Caused by: `. */
function readDotted(lines: readonly string[]): StackLink[] | undefined {
  if (!lines.some(line => /\.php:\d{1,9}\)$/.test(line))) return undefined
  const links: { readonly header: string[]; readonly frames: StackFrame[] }[] = [{ header: [], frames: [] }]
  for (const line of lines) {
    const text = line.trim()
    const frame = readDottedFrame(text)
    const last = links.at(-1)
    if (frame !== undefined) {
      if (last !== undefined && last.frames.length < MAX_FRAMES) last.frames.push(frame)
    } else if (text.startsWith('Caused by: ')) links.push({ header: [text.slice(11)], frames: [] })
    else if (last?.frames.length === 0) last.header.push(text)
  }
  if (links.every(({ frames }) => frames.length === 0)) return undefined
  return links.map(({ header, frames }, i) => ({
    ...(i > 0 && { relation: 'cause' as const }),
    ...readHeader(header),
    frames,
  }))
}

function readDottedFrame(text: string): StackFrame | undefined {
  if (!text.startsWith('at ') || !text.endsWith(')')) return undefined
  const open = text.lastIndexOf('(')
  const place = text.slice(open + 1, -1)
  const colon = place.lastIndexOf(':')
  const line = colon < 0 ? undefined : wholeNumber(place.slice(colon + 1))
  if (open <= 3 || (line === undefined && place !== 'Unknown Source')) return undefined
  const file = line === undefined ? '' : place.slice(0, colon)
  if (line !== undefined && !file.endsWith('.php')) return undefined
  return frameOf({ function: text.slice(3, open), file, line: line ?? 0, text })
}
