import { randomBytes } from 'node:crypto'
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { dataText } from '../../../../api/mcp/data-text.ts'
import type { JaegerTrace } from '../../../../schemas/http/grafana/jaeger.ts'
import type { SpanDetails, Spans, Trace, TraceColumns } from '../../../../schemas/http/traces/schemas.ts'
import type { TracesPage } from '../../../../schemas/http/traces/search.ts'
import { ExportTraceServiceRequestSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { TracesDataSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { rounds } from '../../../support/length.ts'
import { jaegerSpan, tempoSpan, ungrouped } from '../../../support/oracles/shown-elsewhere.ts'
import {
  kindOf,
  type SentSpan,
  serviceOf,
  shownColumns,
  shownDetails,
  statusOf,
} from '../../../support/oracles/shown-span.ts'
import { traceRequest } from '../../../support/payloads/otlp-traces.ts'
import { call } from '../../../support/services/api.ts'
import { until } from '../../../support/until.ts'
import { api, connect, newWorkspace, use } from '../mcp/fixture.ts'

const traceId = randomBytes(16)
const TRACE = traceId.toString('hex')
const NO_PARENT = new Uint8Array()
const MISSING = Buffer.alloc(8, 0xee)
const ROOT = idOf(1)
const NOW = BigInt(Date.now() - 60_000) * 1_000_000n
/** Texts that are easily confused with separators, escapes and what replaces invalid UTF-8. */
const TEXTS = [
  '\0',
  '\x01',
  '\x01\x02',
  '\x01\x03\0',
  '\ufeffa',
  '\ufffd',
  '\ud7ff\ue000',
  '\u{10ffff}',
  '',
  '\0\0',
  'é\0日',
]

const workspace = await newWorkspace()
const sent: SentSpan[] = []
const bySpanId = (a: { spanId: string }, b: { spanId: string }) => (a.spanId < b.spanId ? -1 : 1)

function idOf(number: number): Buffer {
  return Buffer.from(number.toString(16).padStart(16, '0'), 'hex')
}

const text = (value: string) => ({ value: { case: 'stringValue' as const, value } })

/** Random spans of one trace. The first one has an exception, by whose finding the trace is read. */
function randomExport() {
  const resourceSpans = fc.sample(traceRequest, rounds(400)).flatMap(request => request.resourceSpans)
  const attributes = TEXTS.flatMap(odd => [
    { key: odd, value: text('value') },
    { key: `key ${odd}`, value: text(odd) },
    { key: odd, value: { value: { case: 'arrayValue' as const, value: { values: [text(odd)] } } } },
  ])
  const numbers = [
    ...[2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n, 7n].map(value => ({ case: 'intValue' as const, value })),
    ...[1, -0, 1.5, 1e300].map(value => ({ case: 'doubleValue' as const, value })),
  ].map((value, i) => ({ key: `number ${i}`, value: { value } }))
  const lists = {
    key: 'list',
    value: { value: { case: 'arrayValue' as const, value: { values: numbers.map(of => of.value) } } },
  }
  const exception = { name: 'exception', timeUnixNano: NOW, attributes: [{ key: 'exception.type', value: text('E') }] }
  const first = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: text('everything') }, ...numbers, lists] },
        scopeSpans: [
          {
            scope: { name: 'scope', attributes: [...numbers, lists] },
            spans: [
              {
                ...{ name: 'root', attributes: [...attributes, ...numbers, lists], flags: 0x301 },
                events: [exception, { name: '\0', attributes: [...attributes, ...numbers, lists] }],
                links: [
                  { traceId, spanId: ROOT, attributes: [...attributes, lists], droppedAttributesCount: 2 ** 32 - 1 },
                ],
              },
            ],
          },
        ],
      },
    ],
  })
  const message = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [...first.resourceSpans, ...resourceSpans],
  })
  for (const resource of message.resourceSpans) {
    for (const scope of resource.scopeSpans) {
      for (const span of scope.spans) {
        const number = sent.length + 1
        span.traceId = traceId
        span.spanId = idOf(number)
        span.parentSpanId = number === 1 || number % 3 === 0 ? NO_PARENT : number % 3 === 1 ? ROOT : MISSING
        span.startTimeUnixNano = NOW + BigInt(number)
        span.endTimeUnixNano = NOW + BigInt((number * 7_919) % 100_003)
        sent.push({ span, scope, resource })
      }
    }
  }
  return toBinary(ExportTraceServiceRequestSchema, message)
}

async function read<T>(path: string, body?: unknown): Promise<T> {
  const operation = `${body === undefined ? 'GET' : 'POST'} ${path}`
  const answer = await call(api.baseUrl, operation, { bearer: workspace.bearer, body })
  expect({ operation, ...answer, headers: undefined }).toMatchObject({ status: 200 })
  return answer.body as T
}

/** Objects of attributes as JSON, because their keys may be `__proto__`. */
function withTexts(span: ReturnType<typeof shownDetails> | SpanDetails) {
  const [resource, scope] = [span.resource, span.scope].map(of => ({
    ...of,
    attributes: JSON.stringify(of.attributes),
  }))
  return { ...span, resource, scope }
}

async function readDetails(): Promise<SpanDetails[]> {
  let rest = sent.map(({ span }) => Buffer.from(span.spanId).toString('hex'))
  const details: SpanDetails[] = []
  while (rest.length > 0) {
    const spanIds = rest.slice(0, 200)
    const page = await read<Spans>(`/v3/traces/${TRACE}/spans`, { spanIds })
    expect(page).toMatchObject({ tooLarge: [], absent: [] })
    details.push(...page.spans)
    rest = [...page.rest, ...rest.slice(200)]
  }
  return details
}

/** Writes a parent that is not retained as the trace of a finding does. */
function withDangling({ parentSpanId, ...span }: ReturnType<typeof shownColumns>) {
  if (parentSpanId === MISSING.toString('hex')) return { ...span, danglingParentSpanId: parentSpanId }
  return { ...span, ...(parentSpanId !== undefined && { parentSpanId }) }
}

const cut = (value: string) => [...value].slice(0, 256).join('')

beforeAll(async () => {
  await workspace.send('/v1/traces', randomExport())
  await until('all spans are stored', async () => {
    const { body } = await call(api.baseUrl, `GET /v3/traces/${TRACE}`, { bearer: workspace.bearer })
    return (body as TraceColumns).spanCount === sent.length
  })
})

describe('a span with everything comes back equal', () => {
  it('from the details of spans', async () => {
    const details = (await readDetails()).map(({ findingIds: _, receivedAt: __, surfaceId, ...span }) => {
      expect(surfaceId).toBe(workspace.surfaceId)
      return withTexts(span as SpanDetails)
    })
    expect(details).toEqual(sent.map(each => withTexts(shownDetails(each))))
  })

  it('from the trace of a finding', async () => {
    const trace = await until('the trace belongs to the finding of its root', async () => {
      const { spans } = await read<Spans>(`/v3/traces/${TRACE}/spans`, { spanIds: [ROOT.toString('hex')] })
      const path = `GET /v3/findings/${spans[0]?.findingIds[0]}/traces/${TRACE}`
      const { status, body } = await call(api.baseUrl, path, { bearer: workspace.bearer })
      return status === 200 ? (body as Trace) : undefined
    })
    expect(trace.spans).toEqual(sent.map(each => withDangling(shownColumns(each))))
  })

  it('from the columns of the trace', async () => {
    const { names, services, spans } = await read<TraceColumns>(`/v3/traces/${TRACE}`)
    expect(spans.names.map(index => names[index])).toEqual(sent.map(({ span }) => cut(span.name)))
    expect(spans.services.map(index => services[index])).toEqual(sent.map(each => cut(serviceOf(each))))
    expect(spans.kinds).toEqual(sent.map(kindOf))
    expect(spans.statuses).toEqual(sent.map(statusOf))
    expect(spans.flags).toEqual(sent.map(({ span }) => span.flags))
    expect(spans.startDeltaNanos).toEqual(sent.map((_, i) => (i === 0 ? 0 : 1)))
    expect(spans.durationNanos).toEqual(sent.map(({ span }) => Number(span.endTimeUnixNano - span.startTimeUnixNano)))
    expect(spans.ids).toBe(sent.map(({ span }) => Buffer.from(span.spanId).toString('hex')).join(''))
  })

  it('from the list of traces', async () => {
    const { traces } = await read<TracesPage>('/v3/traces')
    expect(traces).toMatchObject([
      {
        ...{ traceId: TRACE, spanCount: sent.length, startedAtUnixNano: String(NOW + 1n) },
        firstSpan: { spanId: ROOT.toString('hex'), name: 'root' },
        errorCount: sent.filter(each => statusOf(each) === 2).length,
        serviceCount: new Set(sent.map(serviceOf)).size,
      },
    ])
  })

  it('from Tempo, in protobuf and in JSON', async () => {
    const expected = ungrouped(create(TracesDataSchema, { resourceSpans: sent.map(tempoSpan) } as never))
    const headers = { authorization: `Bearer ${workspace.bearer}`, accept: 'application/protobuf' }
    const response = await fetch(`${api.baseUrl}/tempo/api/traces/${TRACE}`, { headers })
    const received = fromBinary(TracesDataSchema, Buffer.from(await response.arrayBuffer()))
    // Through bytes, because the reader of the library removes a byte order mark.
    const decoded = fromBinary(TracesDataSchema, toBinary(TracesDataSchema, expected))
    expect(toJson(TracesDataSchema, ungrouped(received))).toEqual(toJson(TracesDataSchema, decoded))
    const { batches } = await read<{ batches: JsonBatch[] }>(`/tempo/api/traces/${TRACE}`)
    const alone = batches.flatMap(({ scopeSpans, ...resource }) =>
      scopeSpans.flatMap(({ spans, ...scope }) =>
        spans.map(span => ({ ...resource, scopeSpans: [{ ...scope, spans: [span] }], spanId: span.spanId })),
      ),
    )
    const json = (toJson(TracesDataSchema, expected) as unknown as { resourceSpans: object[] }).resourceSpans
    const hexOf = (spanId: string) => Buffer.from(spanId, 'base64').toString('hex')
    const ordered = alone.map(each => ({ ...each, spanId: hexOf(each.spanId) })).sort(bySpanId)
    expect(ordered.map(({ spanId: _, ...each }) => each)).toEqual(JSON.parse(JSON.stringify(json)))
  })

  it('from Jaeger', async () => {
    const { data } = await read<{ data: JaegerTrace[] }>(`/jaeger/api/traces/${TRACE}`)
    const [trace] = data
    const spans = trace?.spans.map(({ processID, ...span }) => ({ ...span, process: trace.processes[processID] }))
    // JSON has no negative zero.
    expect(spans).toEqual(JSON.parse(JSON.stringify(sent.map(jaegerSpan))))
  })

  it('from the tool of agents, but for what it leaves out and cuts', async () => {
    const client = await connect(workspace.bearer)
    let whole = 0
    for (const each of sent.slice(0, 200)) {
      const { attributes, events, links, ...expected } = shownDetails(each)
      const { answer } = await use(client, 'get_spans', { traceId: TRACE, spanIds: [expected.spanId] })
      if (answer.cut.length > 0) continue
      whole++
      const [span] = answer.spans as Record<string, unknown>[]
      const seen = (value: string) => dataText(value, 2_000)
      const objectOf = (list: typeof attributes) =>
        JSON.stringify(
          Object.fromEntries(
            Object.entries(Object.fromEntries(list.map(({ key, value }) => [key, value]))).map(([key, value]) => [
              seen(key),
              seen(value),
            ]),
          ),
        )
      expect(JSON.stringify(span?.attributes)).toBe(objectOf(attributes))
      const shownEvents = (span?.events ?? []) as { name: string; attributes: object }[]
      expect(shownEvents.map(event => [event.name, JSON.stringify(event.attributes)])).toEqual(
        events.map(event => [seen(event.name), objectOf(event.attributes)]),
      )
      expect(span?.links ?? []).toEqual(links.map(link => ({ traceId: link.traceId, spanId: link.spanId })))
      expect(span).toMatchObject({ name: seen(expected.name), kind: expected.kind, statusCode: expected.statusCode })
    }
    expect(whole).toBeGreaterThan(sent.length / 4)
  })
})

interface JsonBatch {
  readonly scopeSpans: readonly { readonly spans: readonly { readonly spanId: string }[] }[]
}
