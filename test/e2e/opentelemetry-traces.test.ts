import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { context, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPTraceExporter as GrpcTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc'
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { TYPES } from '../../clickhouse/queries/attributes/attribute-columns.ts'
import { attributeOf } from '../../clickhouse/queries/attributes/packed-attributes.ts'
import { type Door, exporterOptions } from '../support/clients/exporter-options.ts'
import { nanos, textsOf, typesOf } from '../support/oracles/attribute-text.ts'
import { type NativeValue, readRows } from '../support/oracles/read-block.ts'
import { wholeRow } from '../support/oracles/whole-row.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const REQUESTS = 20

let stack: Stack
let clickhouse: ClickHouseClient

beforeAll(async () => {
  stack = await startStack()
  clickhouse = createClickHouse({
    url: stack.services.clickhouseUrl,
    database: 'penstock',
  })
})

afterAll(async () => {
  await clickhouse?.close()
  await stack?.stop()
})

/** Patches the http module once for all tests; each test sets its own provider. */
const instrumentation = new HttpInstrumentation({
  requestHook: (span, request) => {
    if ('url' in request) span.setAttribute('http.route', request.url === '/fail' ? '/fail' : '/items/:id')
  },
})
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())

/** Runs a small server with a failing route, instrumented by the official SDK, and exports its spans. */
async function useInstrumentedShop(service: string, [Exporter, door, compression]: Sent) {
  const seen = new InMemorySpanExporter()
  const exporter = new Exporter({
    ...exporterOptions(stack, 'traces', door, compression),
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service,
      'service.version': '3.1.4',
      'process.pid': 4711,
      'host.cores.used': [0, 1],
      'deployment.canary': true,
    }),
    spanLimits: { eventCountLimit: 3, linkCountLimit: 1, attributeCountLimit: 12 },
    spanProcessors: [new BatchSpanProcessor({ exporter }), new SimpleSpanProcessor({ exporter: seen })],
  })
  instrumentation.setTracerProvider(provider)
  const http = createRequire(import.meta.url)('http') as typeof import('node:http')
  const tracer = provider.getTracer('shop', '0.9', { schemaUrl: 'https://opentelemetry.io/schemas/1.30.0' })

  const server = http.createServer((request, response) => {
    tracer.startActiveSpan('load item', { links: exampleLinks(2) }, span => {
      span.setAttributes({
        'session.id': 'session-1',
        'item.name': 'Käsefondue 🫕',
        'item.price': 12.5,
        'item.count': 9007199254740991,
        'item.rare': false,
        'item.tags': ['a', 'b'],
        'item.sizes': [1, 2.5],
        'item.empty': '',
      })
      for (let i = 0; i < 4; i++) span.addEvent(`step ${i}`, { i, done: i > 2 })
      if (request.url === '/fail') {
        const error = new TypeError('cannot read the price of item 17')
        span.recordException(error)
        span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
        response.statusCode = 500
      }
      span.end()
      response.end('done')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  for (let i = 0; i < REQUESTS; i++) {
    await new Promise<void>((resolve, reject) => {
      const path = i % 4 === 0 ? '/fail' : `/items/${i}`
      http
        .get({ port, host: '127.0.0.1', path, agent: false }, answer => answer.resume().on('end', resolve))
        .on('error', reject)
    })
  }
  await new Promise(resolve => server.close(resolve))
  await provider.forceFlush()
  const spans = [...seen.getFinishedSpans()]
  await provider.shutdown()
  return spans
}

function exampleLinks(count: number) {
  return Array.from({ length: count }, (_, i) => ({
    context: { traceId: `${i + 1}`.repeat(32), spanId: `${i + 1}`.repeat(16), traceFlags: 1 },
    attributes: { reason: `link ${i}` },
  }))
}

interface SpanRow {
  [column: string]: unknown
  id: string
}

type TraceExporter = typeof ProtobufTraceExporter | typeof JsonTraceExporter | typeof GrpcTraceExporter
/** How an export is sent. */
type Sent = readonly [Exporter: TraceExporter, door: Door, compression: CompressionAlgorithm]

describe.each([
  ['protobuf', [ProtobufTraceExporter, 'http', CompressionAlgorithm.NONE]],
  ['protobuf, gzip', [ProtobufTraceExporter, 'drain', CompressionAlgorithm.GZIP]],
  ['JSON', [JsonTraceExporter, 'drain', CompressionAlgorithm.NONE]],
  ['JSON, gzip', [JsonTraceExporter, 'http', CompressionAlgorithm.GZIP]],
  ['gRPC', [GrpcTraceExporter, 'grpc', CompressionAlgorithm.NONE]],
  ['gRPC, gzip', [GrpcTraceExporter, 'grpc', CompressionAlgorithm.GZIP]],
] satisfies [string, Sent][])('traces of the official SDK as %s', (name, sent) => {
  const service = `shop (${name})`
  let exported: readonly ReadableSpan[]

  beforeAll(async () => {
    exported = await useInstrumentedShop(service, sent)
  })

  it('are stored with every field of every span', async () => {
    expect(exported.length).toBe(REQUESTS * 3) // client, server, and the shop's own
    const rows = await until('every span is stored', async () => {
      const read = await readSpans(service)
      return read.length >= exported.length ? read : undefined
    })
    expect(rows).toHaveLength(exported.length)
    const byId = new Map(rows.map(row => [row.id, row]))
    for (const span of exported) expect(byId.get(span.spanContext().spanId)).toEqual(expectedRow(service, span))
  })

  it('are read back with GET /v3/findings/{findingId}/traces/{traceId}', async () => {
    const finding = await until('the TypeError has made a finding', async () => {
      const page = await get<{ findings: Finding[] }>('/v3/findings')
      return page?.findings.find(candidate => candidate.type === 'TypeError' && candidate.serviceName === service)
    })
    expect(finding.occurrenceCount).toBe(REQUESTS / 4)
    const failed = exported.filter(span => span.events.some(event => event.name === 'exception'))
    expect(failed).toHaveLength(REQUESTS / 4)
    expect(await spansNaming(finding.id)).toEqual(failed.map(span => span.spanContext().spanId).sort())
    for (const { traceId } of failed.map(span => span.spanContext())) {
      const spans = exported.filter(span => span.spanContext().traceId === traceId).sort(byStart)
      const startedAt = spans.map(span => nanos(span.startTime)).sort(ascending)[0] as bigint
      const endedAt = spans
        .map(span => nanos(span.endTime))
        .sort(ascending)
        .at(-1) as bigint
      // A finding and its traces become visible one after the other.
      const answer = await until('the trace is readable', () => get(`/v3/findings/${finding.id}/traces/${traceId}`))
      expect(answer).toEqual({
        traceId,
        spans: spans.map(span => expectedSpan(service, span)),
        rootCount: 1,
        danglingParentCount: 0,
        startedAtUnixNano: String(startedAt),
        endedAtUnixNano: String(endedAt),
        wallDurationMs: Number(endedAt - startedAt) / 1e6,
        truncated: false,
      })
    }
  })
})

interface Finding {
  id: string
  type: string
  serviceName: string
  occurrenceCount: number
}

/** Reads a path of the API; returns undefined if the resource does not exist yet. */
async function get<T>(path: string): Promise<T | undefined> {
  const response = await fetch(stack.apiUrl + path, {
    headers: { authorization: `Bearer ${stack.secrets.sessionToken}` },
  })
  const body = await response.json()
  if (response.status === 404) return undefined
  expect(response.status).toBe(200)
  return body as T
}

/** Returns the ids of the spans with an exception of this finding, sorted. */
async function spansNaming(findingId: string): Promise<string[]> {
  const result = await clickhouse.query({
    query: 'SELECT lower(hex(span_id)) AS id FROM exceptions WHERE finding_id = {findingId: String} ORDER BY id',
    query_params: { findingId },
    format: 'JSONEachRow',
  })
  return (await result.json<{ id: string }>()).map(({ id }) => id)
}

type StoredRow = Record<string, NativeValue>

async function readSpans(service: string): Promise<SpanRow[]> {
  const { stream } = await clickhouse.exec({
    query: 'SELECT * EXCEPT received_at FROM spans WHERE service_name = {service: String} FORMAT Native',
    query_params: { service },
  })
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return readRows(Buffer.concat(chunks)).map(row => shownRow(wholeRow(row)))
}

function shownRow({ trace_id, span_id, parent_span_id, events, links, ...row }: StoredRow): SpanRow {
  return {
    ...row,
    ...{ trace: trace_id, id: span_id, parent: parent_span_id },
    ...{ start_time_unix_nano: String(row.start_time_unix_nano), end_time_unix_nano: String(row.end_time_unix_nano) },
    ...shownAttributes(row),
    events: (events as StoredRow[]).map(event => ({
      ...event,
      time_unix_nano: String(event.time_unix_nano),
      ...shownAttributes(event),
    })),
    links: (links as StoredRow[]).map(link => ({
      trace: Buffer.from(String(link.trace_id), 'latin1').toString('hex'),
      span: Buffer.from(String(link.span_id), 'latin1').toString('hex'),
      trace_state: link.trace_state,
      attributes: shownAttributes(link).attributes,
      types: shownAttributes(link).attribute_types,
      dropped: link.dropped_attributes_count,
    })),
  } as unknown as SpanRow
}

function shownAttributes({ attributes, attribute_types }: StoredRow) {
  const texts = (attributes as [string, string][]).map(pair => pair.map(text => Buffer.from(text, 'latin1').toString()))
  return {
    attributes: Object.fromEntries(texts),
    attribute_types: (attribute_types as number[]).map(code => TYPES[code]),
  }
}

function expectedRow(service: string, span: ReadableSpan): SpanRow {
  const { attributes } = span
  const events = span.events.map(event => ({ ...event, attributes: event.attributes ?? {} }))
  return {
    id: span.spanContext().spanId,
    trace: span.spanContext().traceId,
    parent: span.parentSpanContext?.spanId ?? '0'.repeat(16),
    workspace_id: stack.secrets.workspaceId,
    surface_id: stack.secrets.surfaceId,
    service_name: service,
    service_version: '3.1.4',
    resource: JSON.stringify(Object.fromEntries(Object.entries(span.resource.attributes).sort())),
    resource_dropped_attributes_count: 0,
    resource_schema_url: '',
    scope_name: span.instrumentationScope.name,
    scope_version: span.instrumentationScope.version ?? '',
    scope_attributes: '{}',
    scope_schema_url: span.instrumentationScope.schemaUrl ?? '',
    scope_dropped_attributes_count: 0,
    trace_state: '',
    flags: expect.any(Number),
    name: span.name,
    kind: span.kind + 1, // the API counts from INTERNAL = 0, OTLP from INTERNAL = 1
    start_time_unix_nano: String(nanos(span.startTime)),
    end_time_unix_nano: String(nanos(span.endTime)),
    status_code: span.status.code,
    status_message: span.status.message ?? '',
    attributes: textsOf(attributes),
    attribute_types: typesOf(attributes),
    dropped_attributes_count: span.droppedAttributesCount,
    events: events.map(event => ({
      time_unix_nano: String(nanos(event.time)),
      name: event.name,
      attributes: textsOf(event.attributes),
      attribute_types: typesOf(event.attributes),
      dropped_attributes_count: event.droppedAttributesCount ?? 0,
    })),
    dropped_events_count: span.droppedEventsCount,
    links: span.links.map(link => ({
      trace: link.context.traceId,
      span: link.context.spanId,
      trace_state: '',
      attributes: textsOf(link.attributes ?? {}),
      types: typesOf(link.attributes ?? {}),
      dropped: link.droppedAttributesCount ?? 0,
    })),
    dropped_links_count: span.droppedLinksCount,
    session_id: attributes['session.id'] ?? '',
    http_route: attributes['http.route'] ?? '',
    http_status_code: attributes['http.response.status_code'] ?? attributes['http.status_code'] ?? 0,
    // The shop calls itself.
    peer:
      span.kind === SpanKind.CLIENT ? `request\n\n${attributes['server.address'] ?? attributes['net.peer.name']}` : '',
  }
}

const KINDS = ['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']
const STATUSES = ['UNSET', 'OK', 'ERROR']

/** Returns a span in the form of docs/api/requests.md#shapes, without absent fields. */
function expectedSpan(service: string, span: ReadableSpan): unknown {
  const start = nanos(span.startTime)
  const end = nanos(span.endTime)
  const { attributes } = span
  const httpStatusCode = attributes['http.response.status_code'] ?? attributes['http.status_code']
  return {
    spanId: span.spanContext().spanId,
    ...(span.parentSpanContext && { parentSpanId: span.parentSpanContext.spanId }),
    name: span.name,
    kind: KINDS[span.kind],
    serviceName: service,
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(end),
    durationMs: Number(end - start) / 1e6,
    statusCode: STATUSES[span.status.code],
    ...(span.status.message && { statusMessage: span.status.message }),
    ...(attributes['session.id'] !== undefined && { sessionId: attributes['session.id'] }),
    ...(attributes['http.route'] !== undefined && { httpRoute: attributes['http.route'] }),
    ...(httpStatusCode !== undefined && { httpStatusCode }),
    occurrenceCount: 1,
    timestamp: `${new Date(Number(start / 1_000_000n)).toISOString().slice(0, 19)}.${String(start % 1_000_000_000n).padStart(9, '0')}Z`,
  }
}

function byStart(a: ReadableSpan, b: ReadableSpan): number {
  const order = ascending(nanos(a.startTime), nanos(b.startTime))
  return order === 0 ? a.spanContext().spanId.localeCompare(b.spanContext().spanId) : order
}

function ascending(a: bigint, b: bigint): number {
  return Number(a - b)
}

it('a number beyond 64 bits, which the JSON exporter writes as an integer, is stored as its text', async () => {
  const exporter = new JsonTraceExporter({ ...exporterOptions(stack, 'traces', 'http', CompressionAlgorithm.NONE) })
  const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] })
  const tracer = provider.getTracer('numbers')
  for (const size of [1, 1e20, -1e19]) {
    const span = tracer.startSpan('sized')
    span.setAttributes({ size, sizes: [size, null] })
    span.end()
  }
  await provider.forceFlush()
  await provider.shutdown()
  const query = `SELECT ${attributeOf("'\\0size\\0'").value} AS size FROM spans WHERE name = 'sized' ORDER BY size`
  const sizes = await until('the spans are stored', async () => {
    const rows = await (await clickhouse.query({ query, format: 'JSONEachRow' })).json<{ size: string }>()
    return rows.length === 3 ? rows.map(({ size }) => size) : undefined
  })
  expect(sizes).toEqual(['-10000000000000000000', '1', '100000000000000000000'])
})
