import { type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/** JSON lines on stdout. Requests' query strings and credentials never reach a log call; the paths below are a second net. */
export function createLogger(process: string, level: string): Logger {
  return pino({
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: ['*.authorization', '*.secret', '*.publicKey', '*.secretKey'], censor: '[redacted]' },
  })
}
