import type { Exception, LoggerProvider, LogRecord } from '@opentelemetry/api'
import type { Span } from '@opentelemetry/sdk-trace'
import { chainOf, isError, typeOf } from './describe-exception.ts'

/** Records the exceptions of this span with their causes. The SDK records the stack of the outermost one alone. */
export function recordCauses(span: Span): void {
  const record = span.recordException
  span.recordException = (exception, time) => record.call(span, withChain(exception), time)
}

/** Returns a provider whose loggers do the same. */
export function withCauses(provider: LoggerProvider): LoggerProvider {
  return {
    getLogger(...args) {
      const logger = provider.getLogger(...args)
      const emit = logger.emit.bind(logger)
      return {
        enabled: options => logger.enabled(options),
        emit: (record: LogRecord) =>
          emit(isError(record.exception) ? { ...record, exception: withChain(record.exception) } : record),
      }
    },
  }
}

function withChain(exception: Exception): Exception {
  if (!isError(exception)) return exception
  return { name: typeOf(exception), message: exception.message, stack: chainOf(exception) }
}
