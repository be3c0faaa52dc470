import type { Attributes } from '../options.ts'
import { exceptionAttributes } from './exceptions.ts'
import { cut, unixNano } from './otlp.ts'
import type { Telemetry } from './telemetry.ts'
import type { Tracer } from './tracer.ts'

const SEVERITIES = { debug: 5, info: 9, warn: 13, error: 17 } as const
/** Severity of a log record. */
type Severity = keyof typeof SEVERITIES

/** The same error is reported once, although several listeners see it. The page owns it, so it is not kept. */
const reported = new WeakSet<object>()

/** Makes log records, of which those with an exception are occurrences of findings. */
export class Logger {
  readonly #telemetry: Telemetry
  readonly #tracer: Tracer

  constructor(telemetry: Telemetry, tracer: Tracer) {
    this.#telemetry = telemetry
    this.#tracer = tracer
  }

  log(severity: Severity, body: string, attributes: Attributes = {}): void {
    this.#add(severity, body, undefined, attributes)
  }

  /** Reports what was thrown, unless it was reported before. `isHandled` is false if the application did not catch it. */
  exception(thrown: unknown, isHandled: boolean, attributes: Attributes = {}): void {
    if (typeof thrown === 'object' && thrown !== null) {
      if (reported.has(thrown)) return
      reported.add(thrown)
    }
    const found = exceptionAttributes(thrown)
    const body = `${found['exception.type']}: ${found['exception.message']}`
    this.#add('error', body, 'exception', { ...found, 'exception.escaped': !isHandled, ...attributes })
  }

  #add(severity: Severity, body: string, eventName: string | undefined, attributes: Attributes): void {
    const { current } = this.#tracer
    const record = {
      timeUnixNano: unixNano(performance.now()),
      severityNumber: SEVERITIES[severity],
      severityText: severity.toUpperCase(),
      body: { stringValue: cut(body) },
      ...(eventName !== undefined && { eventName }),
      ...(current && { traceId: current.traceId, spanId: current.spanId }),
    }
    this.#telemetry.add('logs', record, attributes)
  }
}
