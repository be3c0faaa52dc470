import { format } from 'node:util'
import { type Logger, logs, SeverityNumber } from '@opentelemetry/api'
import { describeException, isError } from './describe-exception.ts'

/** Methods that write. Others, such as `trace`, `table` and `assert`, call one of these. */
const SEVERITIES = {
  debug: SeverityNumber.DEBUG,
  log: SeverityNumber.INFO,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
} as const

type Method = keyof typeof SEVERITIES
type Write = (...args: unknown[]) => void

const MAX_BODY_CHARS = 65_536

/** Makes a log record of each call of the console, after it was written as ever. */
export function captureConsole(
  target: Record<Method, Write> = console,
  logger: Logger = logs.getLogger('console'),
): void {
  let isEmitting = false
  for (const [method, severityNumber] of Object.entries(SEVERITIES) as [Method, SeverityNumber][]) {
    const write = target[method]
    target[method] = function (this: unknown, ...args: unknown[]) {
      Reflect.apply(write, this, args)
      if (isEmitting) return
      isEmitting = true
      try {
        const error = args.find(isError)
        logger.emit({
          severityNumber,
          severityText: SeverityNumber[severityNumber] ?? '',
          body: format(...args).slice(0, MAX_BODY_CHARS),
          ...(error !== undefined && { attributes: describeException(error) }),
        })
      } finally {
        isEmitting = false
      }
    }
  }
}
