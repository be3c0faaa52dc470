import type { StackLink } from './stack.ts'

/** Maximum number of frames of one exception. The innermost are kept. */
export const MAX_FRAMES = 100

/** Reads the exceptions of a stack. Returns undefined if the lines do not look like a stack of this language. */
export type StackReader = (lines: readonly string[]) => readonly StackLink[] | undefined

const MAX_LINE_LENGTH = 1_024
const MAX_LINES = 2_000
const MAX_MESSAGE_LENGTH = 1_024

/**
 * Splits a text into lines without trailing blanks, each cut to 1,024 characters. Leaves out the middle of a text of more
 * than 2,000 lines, because the innermost frame is at the beginning or at the end.
 */
export function linesOf(text: string): string[] {
  const head: string[] = []
  let at = 0
  while (at < text.length && head.length < MAX_LINES / 2) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline
    head.push(cutLine(text, at, end))
    at = end + 1
  }
  const tail: string[] = []
  for (let end = text.endsWith('\n') ? text.length - 1 : text.length; end > at && tail.length < MAX_LINES / 2; ) {
    const start = text.lastIndexOf('\n', end - 1) + 1
    tail.push(cutLine(text, start, end))
    end = start - 1
  }
  return [...head, ...tail.reverse()]
}

function cutLine(text: string, start: number, end: number): string {
  return text.slice(start, Math.min(end, start + MAX_LINE_LENGTH)).trimEnd()
}

/** Returns the number of characters that a line is indented by. */
export function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

/** Returns a whole number of up to nine digits, or undefined for any other text. */
export function wholeNumber(digits: string): number | undefined {
  if (digits.length === 0 || digits.length > 9) return undefined
  for (let i = 0; i < digits.length; i++) {
    const code = digits.charCodeAt(i)
    if (code < 48 || code > 57) return undefined
  }
  return Number(digits)
}

/** Finds the parenthesis that the last one closes, or returns -1. Paths and receivers have parentheses too. */
export function openingOfLast(call: string): number {
  const last = call.lastIndexOf('(')
  if (call.indexOf(')', last) === call.length - 1) return last
  let depth = 0
  for (let i = call.length - 1; i >= 0; i--) {
    if (call[i] === ')') depth++
    else if (call[i] === '(' && --depth === 0) return i
  }
  return -1
}

/** The type and the message of an exception, as a stack states them. */
type Header = Pick<StackLink, 'type' | 'message'>

/** Reads `type: message` or `type` from the lines above the frames. The type is empty if the first word is none. */
export function readHeader(lines: readonly string[], isType = isTypeName): Header {
  const text = lines.join('\n').trim()
  const [first = ''] = text.split('\n', 1)
  const colon = first.indexOf(': ')
  const end = colon >= 0 ? colon : first.endsWith(':') ? first.length - 1 : first.length
  const type = first.slice(0, end)
  if (!isType(type)) return { type: '', message: cutMessage(text) }
  return { type, message: cutMessage(text.slice(end + 1).trim()) }
}

/** Whether a text can be the name of a class, with its package or module. */
function isTypeName(text: string): boolean {
  return text.length <= 256 && /^[\p{L}_$][\p{L}\p{N}_$.\\/:<>@-]*$/u.test(text)
}

/** Cuts a message to 1,024 characters. */
export function cutMessage(message: string): string {
  return message.slice(0, MAX_MESSAGE_LENGTH)
}
