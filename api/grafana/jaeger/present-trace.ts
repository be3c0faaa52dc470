import type { AttributeColumns, AttributeType } from '../../../clickhouse/queries/attributes/attribute-columns.ts'
import type { SpanDetailsRow } from '../../../clickhouse/queries/traces/select-span-details.ts'
import type { JaegerTrace } from '../../../schemas/http/grafana/jaeger.ts'
import { SPAN_KINDS } from '../../../schemas/http/traces/schemas.ts'
import { exactNumber, parseJson } from '../../http/parse-json.ts'
import type { WholeTrace } from '../../traces/spans/load-all-spans.ts'
import { TextBytes } from '../text-bytes.ts'

type Span = JaegerTrace['spans'][number]
type Tag = Span['tags'][number]

const CUT = 'the trace is larger than a response: only its first spans are shown'
const STATUS_OK = 1
const STATUS_ERROR = 2

/** Returns a trace in JSON, which takes less memory than its objects. */
export function jaegerTraceJson(whole: WholeTrace): string {
  const parts: string[] = []
  addJaegerTrace(whole, text => parts.push(text))
  return parts.join('')
}

/** Returns the JSON of a response with traces that are JSON already. */
export function jaegerAnswer(traces: readonly string[]): string {
  return `${BEFORE_TRACES}${traces.join(',')}${afterTraces(traces.length)}`
}

/** Returns the same with one trace, which may be large, as bytes. */
export function jaegerAnswerOfOne(whole: WholeTrace): Uint8Array {
  const out = new TextBytes()
  out.add(BEFORE_TRACES)
  addJaegerTrace(whole, text => out.add(text))
  out.add(afterTraces(1))
  return out.take()
}

const BEFORE_TRACES = '{"data":['
const afterTraces = (count: number) => `],"total":${count},"limit":0,"offset":0,"errors":null}`

/** Adds a trace as Jaeger does, span by span, with the tags that OpenTelemetry's mapping to Jaeger names. */
function addJaegerTrace({ traceId, rows, truncated }: WholeTrace, add: (text: string) => void): void {
  const processIds = new Map<string, string>()
  const processes: JaegerTrace['processes'] = {}
  add(`{"traceID":${JSON.stringify(traceId)},"spans":[`)
  for (const [i, row] of rows.entries()) {
    const process = JSON.stringify([row.serviceName, row.resourceJson])
    let processID = processIds.get(process)
    if (processID === undefined) {
      processID = `p${processIds.size + 1}`
      processIds.set(process, processID)
      const tags = objectTags(row.resourceJson).filter(({ key }) => key !== 'service.name')
      processes[processID] = { serviceName: row.serviceName, tags }
    }
    const span = JSON.stringify(presentSpan(traceId, row, processID))
    add(i === 0 ? span : `,${span}`)
  }
  add(`],"processes":${JSON.stringify(processes)},"warnings":${JSON.stringify(truncated ? [CUT] : null)}}`)
}

function presentSpan(traceID: string, row: SpanDetailsRow, processID: string): Span {
  const [start, end] = [BigInt(row.startTimeUnixNano), BigInt(row.endTimeUnixNano)]
  const isRoot = /^0*$/.test(row.parentSpanId)
  return {
    traceID,
    spanID: row.spanId,
    flags: row.flags & 0xff,
    operationName: row.name,
    references: [
      ...(isRoot ? [] : [{ refType: 'CHILD_OF' as const, traceID, spanID: row.parentSpanId }]),
      ...row.linkColumns.map(([ofTrace, ofSpan]) => ({
        ...{ refType: 'FOLLOWS_FROM' as const, traceID: ofTrace, spanID: ofSpan },
      })),
    ],
    startTime: Number(start / 1_000n),
    duration: end > start ? Number((end - start) / 1_000n) : 0,
    tags: [...columnTags(row.attributeColumns), ...ownTags(row)],
    logs: row.eventColumns.map(([time, name, attributes]) => ({
      timestamp: Number(BigInt(time) / 1_000n),
      fields: [textTag('event', name), ...columnTags(attributes)],
    })),
    processID,
    warnings: null,
  }
}

/** Tags of fields that are attributes in Jaeger only. */
function ownTags({ kind, statusCode, statusMessage, scopeName, scopeVersion, traceState }: SpanDetailsRow): Tag[] {
  const named = kind > 0 ? SPAN_KINDS[kind] : undefined
  return [
    ...(named === undefined ? [] : [textTag('span.kind', named.toLowerCase())]),
    ...(statusCode === STATUS_OK ? [textTag('otel.status_code', 'OK')] : []),
    ...(statusCode === STATUS_ERROR
      ? [textTag('otel.status_code', 'ERROR'), { key: 'error', type: 'bool' as const, value: true }]
      : []),
    ...(statusMessage === '' ? [] : [textTag('otel.status_description', statusMessage)]),
    ...(scopeName === '' ? [] : [textTag('otel.scope.name', scopeName)]),
    ...(scopeVersion === '' ? [] : [textTag('otel.scope.version', scopeVersion)]),
    ...(traceState === '' ? [] : [textTag('w3c.tracestate', traceState)]),
  ]
}

function textTag(key: string, value: string): Tag {
  return { key, type: 'string', value }
}

function columnTags([keys, values, types]: AttributeColumns): Tag[] {
  return keys.map((key, i) => typedTag(key, types[i] ?? 'empty', values[i] ?? ''))
}

function typedTag(key: string, type: AttributeType, text: string): Tag {
  switch (type) {
    case 'bool':
      return { key, type: 'bool', value: text === 'true' }
    case 'int':
      // A number that JSON does not have exactly is text, as Jaeger's own interface returns it.
      return { key, type: 'int64', value: exactNumber(text) }
    case 'double':
      return { key, type: 'float64', value: Number.isFinite(Number(text)) ? Number(text) : text }
    case 'bytes':
      return { key, type: 'binary', value: text }
    default:
      return textTag(key, text)
  }
}

function objectTags(json: string): Tag[] {
  const object = json === '' ? {} : (parseJson(json, BigInt) as Record<string, unknown>)
  return Object.entries(object).map(([key, value]): Tag => {
    if (typeof value === 'boolean') return { key, type: 'bool', value }
    if (typeof value === 'bigint') return { key, type: 'int64', value: exactNumber(String(value)) }
    if (typeof value === 'number') return { key, type: 'float64', value }
    return textTag(key, typeof value === 'string' ? value : jsonText(value))
  })
}

/** Returns the JSON of a list or a map that `parseJson` has read. */
function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, of) => (typeof of === 'bigint' ? exactNumber(String(of)) : of))
}
