import type { Exception, LoggerProvider, LogRecord, Span } from '@opentelemetry/api'
import { TracerProvider } from '@opentelemetry/sdk-trace'
import { chainOf, isError, typeOf } from './describe-exception.ts'

/**
 * Makes spans record exceptions with their causes, whichever exporter they have. The SDK records the stack of the outermost one
 * alone. A processor could not do it: it sees an exception as text. So this changes the class of the SDK's spans.
 */
export function recordCauses(): void {
  const span: Span = new TracerProvider().getTracer('@penstock/node').startSpan('')
  const spans = Object.getPrototypeOf(span) as Span
  const record = spans.recordException
  spans.recordException = function (exception, time) {
    record.call(this, withChain(exception), time)
  }
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
