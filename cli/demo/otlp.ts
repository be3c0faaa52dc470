/** A value of an attribute. */
type Value = string | number | boolean
/** Attributes by their key. Undefined ones are left out. */
export type Attributes = Readonly<Record<string, Value | undefined>>

/** A span, log record or metric, with what OTLP states once for many of them. */
export interface OtlpRecord {
  readonly resource: Attributes
  readonly scope: { readonly name: string; readonly version: string }
  readonly record: object
}

/** A signal of OTLP. */
export type Signal = 'traces' | 'logs' | 'metrics'

const FIELDS = {
  traces: ['resourceSpans', 'scopeSpans', 'spans'],
  logs: ['resourceLogs', 'scopeLogs', 'logRecords'],
  metrics: ['resourceMetrics', 'scopeMetrics', 'metrics'],
} as const

/** Returns attributes as OTLP has them in JSON. */
export function attributesOf(values: Attributes): object[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValueOf(value) }],
  )
}

function anyValueOf(value: Value): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

/** Returns a time in ms as OTLP has it, to the microsecond. */
export function nanosOf(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n)
}

/** Returns export requests of at most `size` records. Each is of one resource, as the exporter of an SDK sends it. */
export function* exportsOf(signal: Signal, records: readonly OtlpRecord[], size: number): Generator<object> {
  const [outer, middle, inner] = FIELDS[signal]
  const byOrigin = Map.groupBy(records, ({ resource, scope }) => JSON.stringify([resource, scope]))
  for (const group of byOrigin.values()) {
    for (let at = 0; at < group.length; at += size) {
      const part = group.slice(at, at + size)
      const { resource, scope } = group[0] as OtlpRecord
      const scoped = { scope, [inner]: part.map(({ record }) => record) }
      yield { [outer]: [{ resource: { attributes: attributesOf(resource) }, [middle]: [scoped] }] }
    }
  }
}
