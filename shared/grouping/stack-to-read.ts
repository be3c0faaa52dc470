/** A frame that begins after this many characters is not looked for: the cost of a long message is bounded. */
const MAX_MESSAGE_LENGTH = 2_048

/** The parts of an exception that its stack is found in. */
interface Thrown {
  readonly type: string
  readonly message: string
  readonly stacktrace: string
}

/**
 * Returns the part of a stack that is read: without the lines of the message, which are no frames and often have a number or an
 * id. Without them, the stacks of one finding are equal texts more often.
 */
export function stackToRead({ type, message, stacktrace }: Thrown): string {
  const stack = withoutMessage(message, stacktrace)
  return type === '' ? stack : fromFirstFrame(stack)
}

/** Removes all but the first line of the message from the head of the stack. */
function withoutMessage(message: string, stacktrace: string): string {
  const end = message.indexOf('\n')
  if (end < 0) return stacktrace
  const start = stacktrace.slice(0, MAX_MESSAGE_LENGTH).indexOf(message.slice(0, Math.min(end, 200)))
  // Ruby writes the type behind the first line.
  const line = start < 0 ? -1 : stacktrace.indexOf('\n', start)
  const rest = message.slice(end)
  if (line < 0 || !stacktrace.startsWith(rest, line)) return stacktrace
  return stacktrace.slice(0, line) + stacktrace.slice(line + rest.length)
}

/** Matches a frame that follows lines of a message, if none of these can be a part of the stack. */
const FRAME = /^[ \t]+at \S/
const NO_MESSAGE = /@|--->|^\s*#?\d+[:\s]|Traceback|File "|goroutine|^\s*at /

/** Returns a stack from the first frame on that begins with `at`, or all of it. */
function fromFirstFrame(stack: string): string {
  for (let start = 0; start < Math.min(stack.length, MAX_MESSAGE_LENGTH); ) {
    const newline = stack.indexOf('\n', start)
    const end = newline < 0 ? stack.length : newline
    const line = stack.slice(start, Math.min(end, start + MAX_MESSAGE_LENGTH))
    if (FRAME.test(line)) return stack.slice(start)
    if (NO_MESSAGE.test(line)) return stack
    start = end + 1
  }
  return stack
}
