import { exceptionAttributes } from '../signals/exceptions.ts'
import type { Logger } from '../signals/logger.ts'

/** Longest text of a logged argument. */
const MAX_ARGUMENT = 1_000

/** Reports errors that are not caught, and those that are logged. Returns a function that undoes it. */
export function watchErrors(logger: Logger): () => void {
  const onError = ({ error, message, filename, lineno, colno }: ErrorEvent) => {
    // A script of another origin states neither the error nor its place.
    const place = filename
      ? { 'code.file.path': filename, 'code.line.number': lineno, 'code.column.number': colno }
      : {}
    logger.exception(error ?? new ReportedError(message), false, place)
  }
  const onRejection = ({ reason }: PromiseRejectionEvent) => logger.exception(reason, false)
  addEventListener('error', onError)
  addEventListener('unhandledrejection', onRejection)
  const restore = watchConsole(logger)
  return () => {
    removeEventListener('error', onError)
    removeEventListener('unhandledrejection', onRejection)
    restore()
  }
}

/** An error of which only the message is known. */
class ReportedError extends Error {
  override readonly name = 'Error'
  constructor(message: string) {
    super(message)
    this.stack = ''
  }
}

function watchConsole(logger: Logger): () => void {
  const { error: original } = console
  let isReporting = false
  function watched(this: unknown, ...given: unknown[]): void {
    Reflect.apply(original, console, given)
    if (isReporting) return
    isReporting = true
    try {
      const thrown = given.find(argument => argument instanceof Error)
      logger.log('error', given.map(textOf).join(' '), thrown === undefined ? {} : exceptionAttributes(thrown))
    } finally {
      isReporting = false
    }
  }
  console.error = watched
  return () => {
    if (console.error === watched) console.error = original
  }
}

function textOf(argument: unknown): string {
  if (typeof argument === 'string') return argument.slice(0, MAX_ARGUMENT)
  if (argument instanceof Error) return `${argument.name}: ${argument.message}`.slice(0, MAX_ARGUMENT)
  try {
    return (JSON.stringify(argument) ?? String(argument)).slice(0, MAX_ARGUMENT)
  } catch {
    // A cycle, such as an element of a framework.
    return Object.prototype.toString.call(argument)
  }
}
