import type { Attributes } from '../options.ts'
import { type KeyValue, keyValues } from './otlp.ts'

/** Signals by the paths at which the service takes them. */
type Signal = 'traces' | 'logs' | 'metrics'

/** A span, record or metric as OTLP has it in JSON. */
type OtlpRecord = Readonly<Record<string, unknown>>

/** Where what happens on a page is noted until it is sent. */
export interface Telemetry {
  /** Adds a span, record or metric. `attributes` are added to those that all have. */
  add(signal: Signal, record: OtlpRecord, attributes?: Attributes): void
  /** Attributes that all spans, records and points have. */
  common(): Attributes
}

/** Records that wait to be sent in one request, and their approximate size. */
interface Waiting {
  records: OtlpRecord[]
  bytes: number
}

/** Most records of a signal that wait. Further ones are counted and left out until the next request. */
const MAX_RECORDS = 2_000
/** A request is made without waiting when this much waits. */
const ENOUGH_BYTES = 48 * 1024

/** Name and version of this package, as scopes name it. */
const SCOPE = { name: '@penstock/browser' }

/** Collects records by signal. */
export class TelemetryBuffer implements Telemetry {
  readonly #resource: readonly KeyValue[]
  readonly #common: () => Attributes
  readonly #onEnough: () => void
  #waiting: Record<Signal, Waiting> = empty()
  #leftOut = 0

  constructor(resource: Attributes, common: () => Attributes, onEnough: () => void) {
    this.#resource = keyValues(resource)
    this.#common = common
    this.#onEnough = onEnough
  }

  common(): Attributes {
    return this.#common()
  }

  add(signal: Signal, record: OtlpRecord, attributes: Attributes = {}): void {
    const waiting = this.#waiting[signal]
    if (waiting.records.length >= MAX_RECORDS) {
      this.#leftOut++
      return
    }
    const whole =
      signal === 'metrics' ? record : { ...record, attributes: keyValues({ ...this.#common(), ...attributes }) }
    waiting.records.push(whole)
    waiting.bytes += 300 + JSON.stringify(attributes).length
    if (waiting.bytes > ENOUGH_BYTES) this.#onEnough()
  }

  /** Takes what waits, as bodies of OTLP requests. */
  take(): { readonly signal: Signal; readonly body: string }[] {
    const taken = this.#waiting
    this.#waiting = empty()
    if (this.#leftOut > 0) taken.logs.records.push(this.#leftOutRecord())
    return (['traces', 'logs', 'metrics'] as const).flatMap(signal => {
      const { records } = taken[signal]
      return records.length === 0 ? [] : [{ signal, body: JSON.stringify(this.#exportOf(signal, records)) }]
    })
  }

  #leftOutRecord(): OtlpRecord {
    const body = {
      stringValue: `the page has made more telemetry than is sent: ${this.#leftOut} records were left out`,
    }
    this.#leftOut = 0
    return {
      timeUnixNano: `${Date.now()}000000`,
      severityNumber: 13,
      severityText: 'WARN',
      body,
      attributes: keyValues(this.#common()),
    }
  }

  #exportOf(signal: Signal, records: readonly OtlpRecord[]): object {
    const resource = { attributes: this.#resource }
    if (signal === 'traces') return { resourceSpans: [{ resource, scopeSpans: [{ scope: SCOPE, spans: records }] }] }
    if (signal === 'logs') return { resourceLogs: [{ resource, scopeLogs: [{ scope: SCOPE, logRecords: records }] }] }
    return { resourceMetrics: [{ resource, scopeMetrics: [{ scope: SCOPE, metrics: records }] }] }
  }
}

function empty(): Record<Signal, Waiting> {
  return {
    traces: { records: [], bytes: 0 },
    logs: { records: [], bytes: 0 },
    metrics: { records: [], bytes: 0 },
  }
}
