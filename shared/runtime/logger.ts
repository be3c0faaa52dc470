import { type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/**
 * Creates a logger that writes JSON lines to stdout. Query strings and credentials of requests never reach a log call. The
 * redacted paths are a second safeguard.
 */
export function createLogger(process: string, level: string): Logger {
  return pino({
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: ['*.authorization', '*.secret', '*.publicKey', '*.secretKey'], censor: '[redacted]' },
  })
}
