import { logs, SeverityNumber } from '@opentelemetry/api'
import { describeException, isError, typeOf } from './describe-exception.ts'

/**
 * Records exceptions that nothing has caught, also those of promises. A monitor changes nothing: the process prints the error and
 * ends as without it, or the application handles it.
 */
export function captureExceptions(): void {
  const logger = logs.getLogger('@penstock/node')
  process.on('uncaughtExceptionMonitor', (thrown: unknown) => {
    const isFatal = process.listenerCount('uncaughtException') === 0
    const attributes = describeException(thrown)
    logger.emit({
      severityNumber: isFatal ? SeverityNumber.FATAL : SeverityNumber.ERROR,
      severityText: isFatal ? 'FATAL' : 'ERROR',
      body: isError(thrown) ? `${typeOf(thrown)}: ${thrown.message}` : String(attributes['exception.message']),
      attributes,
    })
  })
}
