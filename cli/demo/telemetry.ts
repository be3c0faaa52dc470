import type { Exception } from './exceptions.ts'
import { type Attributes, attributesOf, nanosOf, type OtlpRecord } from './otlp.ts'
import type { Random } from './random.ts'
import { resourceOf, type Service, scopeOf } from './services.ts'
import { count, createTruth } from './truth.ts'

const KINDS = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const
const SEVERITIES = { DEBUG: 5, INFO: 9, WARN: 13, ERROR: 17, FATAL: 21 } as const

/** A span to make. Times are in ms. */
interface SpanShape {
  readonly kind: keyof typeof KINDS
  readonly at: number
  readonly ms: number
  readonly parent?: string | undefined
  readonly attributes?: Attributes
  /** The message of a status of ERROR. */
  readonly error?: string | undefined
  readonly exception?: Exception | undefined
}

/** A log record to make. */
interface LogShape {
  readonly at: number
  readonly span?: string
  readonly attributes?: Attributes
  readonly exception?: Exception
}

/** A visit of the page by somebody. */
export interface Visit {
  readonly sessionId: string
  /** The release of the page. */
  readonly version: string
}

/** Collects the records of a part of the shop, and counts them. */
export class Telemetry {
  readonly traces: OtlpRecord[] = []
  readonly logs: OtlpRecord[] = []
  readonly metrics: OtlpRecord[] = []
  readonly truth = createTruth()
  readonly random: Random

  constructor(random: Random) {
    this.random = random
  }

  /** Begins a trace of a visit. */
  trace(visit: Visit): Trace {
    this.truth.traces++
    return new Trace(this, visit, this.random.hex(32))
  }
}

const eventOf = ({ type, message, stack }: Exception): Attributes => ({
  'exception.type': type,
  'exception.message': message,
  'exception.stacktrace': stack,
})

/** A trace whose spans and log records belong to a session. */
export class Trace {
  readonly #telemetry: Telemetry
  readonly #visit: Visit
  readonly #parents = new Map<string, string>()
  /** Occurrences by span: failed spans, and exceptions with their type. */
  readonly #occurrences = new Map<string, string>()
  readonly id: string

  constructor(telemetry: Telemetry, visit: Visit, id: string) {
    this.#telemetry = telemetry
    this.#visit = visit
    this.id = id
  }

  /** Makes a span, and returns its id. */
  span(service: Service, name: string, shape: SpanShape): string {
    const { truth, random, traces } = this.#telemetry
    const { kind, at, ms, parent, attributes = {}, error, exception } = shape
    const spanId = random.hex(16)
    const thrown = exception && {
      timeUnixNano: nanosOf(at + ms * 0.97),
      name: 'exception',
      attributes: attributesOf(eventOf(exception)),
    }
    traces.push({
      ...this.#origin(service, attributes),
      record: {
        traceId: this.id,
        spanId,
        ...(parent !== undefined && { parentSpanId: parent }),
        name,
        kind: KINDS[kind],
        startTimeUnixNano: nanosOf(at),
        endTimeUnixNano: nanosOf(at + ms),
        attributes: attributesOf({ ...this.#session(service), ...attributes }),
        ...(thrown && { events: [thrown] }),
        ...(error !== undefined && { status: { code: 2, message: error } }),
      },
    })
    count(truth, 'spans', service)
    if (parent !== undefined) this.#parents.set(spanId, parent)
    if (exception !== undefined) this.#occur(spanId, `${service} ${exception.type}`, exception)
    else if (error !== undefined) this.#occur(spanId, `${service} ${name}`)
    return spanId
  }

  log(service: Service, severity: keyof typeof SEVERITIES, text: string, shape: LogShape): void {
    const { truth, logs } = this.#telemetry
    const { at, span, attributes = {}, exception } = shape
    const own = { ...this.#session(service), ...attributes, ...(exception && eventOf(exception)) }
    logs.push({
      ...this.#origin(service, {}),
      record: {
        timeUnixNano: nanosOf(at),
        observedTimeUnixNano: nanosOf(at + 2),
        severityNumber: SEVERITIES[severity],
        severityText: severity,
        body: { stringValue: text },
        attributes: attributesOf(own),
        traceId: this.id,
        ...(span !== undefined && { spanId: span }),
      },
    })
    count(truth, 'logs', severity)
    if (exception === undefined) return
    if (span === undefined) count(truth, 'occurrences', `${service} ${exception.type}`)
    else this.#occur(span, `${service} ${exception.type}`, exception)
  }

  /**
   * Counts an occurrence of a span, whose parents were made before (docs/api/findings.md#one-failure). It explains the failure of
   * each span above. The span and its log record count once.
   */
  #occur(spanId: string, name: string, exception?: Exception): void {
    const { truth } = this.#telemetry
    const place = exception === undefined ? spanId : `${spanId} ${name}`
    if (this.#occurrences.has(place)) return
    const first = exception === undefined ? this.#parents.get(spanId) : spanId
    for (let at = first; at !== undefined; at = this.#parents.get(at)) {
      const explained = this.#occurrences.get(at)
      if (explained === undefined) continue
      this.#occurrences.delete(at)
      count(truth, 'occurrences', explained, -1)
      if (truth.occurrences[explained] === 0) delete truth.occurrences[explained]
    }
    this.#occurrences.set(place, name)
    count(truth, 'occurrences', name)
  }

  #origin(service: Service, attributes: Attributes): Pick<OtlpRecord, 'resource' | 'scope'> {
    return { resource: resourceOf(service, this.#visit.version), scope: scopeOf(service, attributes) }
  }

  /** The page and the services that read its baggage know the session. */
  #session(service: Service): Attributes {
    return service === 'shop-web' || service === 'gateway' ? { 'session.id': this.#visit.sessionId } : {}
  }
}
