import { normalizeFile } from './normalize-file.ts'

const MAX_LINE_LENGTH = 1024

/** A stack frame as it was sent, without line and column. */
interface StackFrame {
  functionName: string
  file: string
}

/**
 * Returns the top frames of a stack trace as `function file`, innermost first. Parts that change from release to
 * release are removed. Reads the formats of V8, Firefox and Safari, Java, .NET, Python and Go. Lines are cut first and
 * then searched with `indexOf` and similar methods, so the time is linear in the length of any text.
 */
export function topFrames(stack: string, count: number): string[] {
  const frames: StackFrame[] = []
  const python: StackFrame[] = []
  for (const line of linesOf(stack)) {
    const pythonFrame = readPythonFrame(line)
    if (pythonFrame !== undefined) python.push(pythonFrame)
    if (python.length > 0) continue
    const frame = readFrame(line)
    if (frame !== undefined) frames.push(frame)
    if (frames.length === count) break
  }
  // Python prints the innermost frame last.
  const top = python.length > 0 ? python.slice(-count).reverse() : frames
  return top.map(frame => `${normalizeFunction(frame.functionName)} ${normalizeFile(frame.file)}`)
}

/** A frame that begins after this many characters is not looked for: the cost of a long message is bounded. */
const MAX_MESSAGE_LENGTH = 2_048

/**
 * Returns a stack trace from its first frame on, or all of it if its first 2,048 characters have no frame. The lines before it
 * are the message, which often has a number or an id: without them, the stacks of one finding are equal texts more often.
 * `topFrames` returns the same for both.
 */
export function fromFirstFrame(stack: string): string {
  for (let start = 0; start < Math.min(stack.length, MAX_MESSAGE_LENGTH); ) {
    const newline = stack.indexOf('\n', start)
    const end = newline < 0 ? stack.length : newline
    const line = stack.slice(start, Math.min(end, start + MAX_LINE_LENGTH)).trim()
    if (readPythonFrame(line) !== undefined || readFrame(line) !== undefined) return stack.slice(start)
    start = end + 1
  }
  return stack
}

/** Yields the lines of a text, cut to 1,024 characters and trimmed. */
export function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    yield text.slice(start, Math.min(end, start + MAX_LINE_LENGTH)).trim()
    start = end + 1
  }
}

/** Reads a frame of Python: `File "app/views.py", line 12, in handler`. */
function readPythonFrame(line: string): StackFrame | undefined {
  if (!line.startsWith('File "')) return undefined
  const quote = line.indexOf('"', 6)
  if (quote < 0 || !line.startsWith(', line ', quote + 1)) return undefined
  const inAt = line.indexOf(', in ', quote)
  return { functionName: inAt < 0 ? '' : line.slice(inAt + 5), file: line.slice(6, quote) }
}

function readFrame(line: string): StackFrame | undefined {
  if (line.startsWith('at ')) return readAtFrame(line.slice(3))
  const at = line.lastIndexOf('@')
  if (at >= 0) return readGeckoFrame(line.slice(0, at), line.slice(at + 1))
  return readGoFrame(line)
}

/**
 * Reads a frame that begins with `at`. V8: `at async Type.method [as name] (file:1:2)` or `at file:1:2`. Java:
 * `at pkg.Type.method(File.java:1)`. .NET: `at Ns.Type.Method(Args) in C:\File.cs:line 1`.
 */
function readAtFrame(text: string): StackFrame {
  const call = text.startsWith('async ') ? text.slice(6) : text
  const netLine = call.lastIndexOf(':line ')
  const netFile = netLine < 0 ? -1 : call.indexOf(' in ')
  if (netFile > 0 && netFile < netLine) {
    return { functionName: beforeParenthesis(call.slice(0, netFile)), file: call.slice(netFile + 4, netLine) }
  }
  if (call.endsWith(')')) {
    const open = openingOfLast(call)
    if (open >= 0) return { functionName: call.slice(0, open), file: stripPosition(call.slice(open + 1, -1)).file }
  }
  const location = stripPosition(call)
  return location.numbers > 0 ? { functionName: '', file: location.file } : { functionName: call, file: '' }
}

/** Reads a frame of Firefox or Safari: `method@file:1:2`, where the method may be missing. */
function readGeckoFrame(functionName: string, text: string): StackFrame | undefined {
  const location = stripPosition(text)
  if (location.numbers === 0 && text !== '[native code]') return undefined
  return { functionName, file: location.file }
}

/** Reads a frame of Go: `/srv/app/main.go:12 +0x1d`. The previous line has the function and argument addresses. */
function readGoFrame(line: string): StackFrame | undefined {
  const space = line.indexOf(' ')
  const location = stripPosition(space < 0 ? line : line.slice(0, space))
  return location.numbers > 0 && location.file.endsWith('.go') ? { functionName: '', file: location.file } : undefined
}

/** Finds the parenthesis that the last one closes: `at eval (eval at load (file:1:2), <anonymous>:1:1)`. */
function openingOfLast(call: string): number {
  let depth = 0
  for (let i = call.length - 1; i >= 0; i--) {
    if (call[i] === ')') depth++
    else if (call[i] === '(' && --depth === 0) return i
  }
  return -1
}

function beforeParenthesis(call: string): string {
  const open = call.indexOf('(')
  return open < 0 ? call : call.slice(0, open)
}

/** Removes `:12` or `:12:34` from the end. */
function stripPosition(text: string): { file: string; numbers: number } {
  let end = text.length
  let numbers = 0
  while (numbers < 2) {
    let digits = end
    while (digits > 0 && isDigit(text.charCodeAt(digits - 1))) digits--
    if (digits === end || digits === 0 || text[digits - 1] !== ':') break
    end = digits - 1
    numbers++
  }
  return { file: text.slice(0, end), numbers }
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** Removes the alias that V8 adds, and the numbers that Java gives to lambdas and proxies. */
function normalizeFunction(name: string): string {
  const alias = name.indexOf(' [as ')
  return (alias < 0 ? name : name.slice(0, alias))
    .trim()
    .replace(/\$\$Lambda[^.]*/g, '$$$$Lambda')
    .replace(/\$Proxy\d+/g, '$$Proxy')
}
