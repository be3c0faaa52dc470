import { type DestinationStream, type LogFn, type Logger, pino } from 'pino'
import { LogRepeats } from './process/log-repeats.ts'

export type { Logger } from 'pino'

/** Levels of pino whose lines are counted. Those of the others are all written. */
const WARN = 40
const ERROR = 50

/**
 * Creates a logger that writes JSON lines to stdout, or to `destination`. Query strings and credentials of requests never reach
 * a log call. The redacted paths are a second safeguard. A flood of one warning or error is one line each 10 s, whose
 * `repeated` counts the others (`LogRepeats`).
 */
export function createLogger(process: string, level: string, destination?: DestinationStream): Logger {
  const repeats = new LogRepeats()
  unwritten.add(repeats)
  return pino(
    {
      level,
      base: { process },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: ['*.authorization', '*.secret', '*.publicKey', '*.secretKey'], censor: '[redacted]' },
      hooks: {
        logMethod(args, method, number) {
          if (number !== WARN && number !== ERROR) return method.apply(this, args)
          const write = (repeated: number) => method.apply(this, repeated === 0 ? args : withCount(args, repeated))
          repeats.add(keyOf(args, number), write)
        },
      },
    },
    destination,
  )
}

/** What is counted is written when the process ends. */
const unwritten = new Set<LogRepeats>()
process.once('exit', () => {
  for (const repeats of unwritten) repeats.flush()
})

type LogArguments = Parameters<LogFn>

/** Characters of the text of an error that are compared. */
const TEXT_MAX = 200
/** Ids, ports and numbers, in which texts of one error differ. */
const VARYING = /[0-9a-f]{8,}|\d+/gi

/** Two lines are equal if they have the same level and message, and the code of their errors, else the text without numbers. */
function keyOf([first, second]: LogArguments, level: number): string {
  const fields = fieldsOf(first)
  const { code, error, reason } = { ...errorOf(fields), ...fields } as Readonly<Record<string, unknown>>
  const text = typeof code === 'string' ? code : `${error ?? ''}`.slice(0, TEXT_MAX).replaceAll(VARYING, '#')
  return `${level} ${fields === undefined ? first : second} ${text} ${reason ?? ''}`
}

const fieldsOf = (value: unknown) =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined

/** Returns what a line compares of an error that is given whole: `logger.error(error)`, or as `err`. */
function errorOf(fields: object | undefined): { readonly code?: unknown; readonly error?: string } {
  const error = fields instanceof Error || fields === undefined ? fields : (fields as { err?: unknown }).err
  return error instanceof Error ? { code: 'code' in error ? error.code : undefined, error: error.message } : {}
}

function withCount([first, ...others]: LogArguments, repeated: number): LogArguments {
  if (first instanceof Error) return [{ err: first, repeated }, ...others] as unknown as LogArguments
  const fields = fieldsOf(first)
  if (fields === undefined) return [{ repeated }, first, ...others] as unknown as LogArguments
  return [{ ...fields, repeated }, ...others] as unknown as LogArguments
}
