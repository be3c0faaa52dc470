import { randomBytes } from 'node:crypto'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { insertNative } from '../../../../clickhouse/client.ts'
import { ExportTraceServiceRequestSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import {
  type SpanSchema,
  TracesDataSchema,
} from '../../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { createSpansBatch } from '../../../../workers/otlp/traces/spans.ts'
import { withExceptions } from '../../../support/oracles/with-exceptions.ts'
import { START, signToken } from '../../../support/services/api.ts'
import { api, child, client, nextTraceId, span, store } from './fixture.ts'

const token = await signToken()
const startSeconds = Number(START / 1_000_000_000n)
const range = { start: String(startSeconds - 60), end: String(startSeconds + 60) }

async function get(path: string, { bearer = token, accept = 'application/json' } = {}) {
  const headers = { authorization: `Bearer ${bearer}`, accept }
  const response = await fetch(`${api.baseUrl}/tempo/api${path}`, { headers })
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

async function read<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
  const { status, bytes } = await get(`${path}?${new URLSearchParams(parameters)}`)
  expect({ status, body: String(bytes) }).toMatchObject({ status: 200 })
  return JSON.parse(String(bytes)) as T
}

const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })

/** Stores an export as a worker does. Returns what a reader of it should get. */
async function storeExport(traceId: string, spans: readonly MessageInitShape<typeof SpanSchema>[]) {
  const resourceSpans = [
    {
      resource: {
        attributes: [text('host.name', 'one'), text('service.name', 'tempo-shop')],
        droppedAttributesCount: 1,
      },
      schemaUrl: 'https://schema.example/1',
      scopeSpans: [
        {
          scope: { name: 'lib', version: '2', attributes: [text('a', 'b')] },
          schemaUrl: 'https://schema.example/2',
          spans: spans.map(each => ({ traceId: Buffer.from(traceId, 'hex'), ...each })),
        },
      ],
    },
  ]
  const body = Buffer.from(
    toBinary(ExportTraceServiceRequestSchema, create(ExportTraceServiceRequestSchema, { resourceSpans })),
  )
  const batch = withExceptions(createSpansBatch())
  const frame = {
    ...{ workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: Date.now(), contentType: 'application/x-protobuf' },
    ...{ contentEncoding: 'identity', attributes: '', body },
  } as const
  expect(batch.append(frame, body)).toMatchObject({ ok: true })
  for (const [i, block] of batch.tables().entries()) {
    const deduplicationToken = `${randomBytes(8).toString('hex')}:${i}`
    await insertNative(client, { ...block, deduplicationToken, timeoutMs: 30_000 })
  }
  return create(TracesDataSchema, { resourceSpans })
}

const root = {
  ...{ spanId: Buffer.alloc(8, 1), name: 'GET /tempo', kind: 2, flags: 0x301, traceState: 'vendor=1' },
  ...{ startTimeUnixNano: START, endTimeUnixNano: START + 250_000_000n, status: { code: 2, message: 'declined' } },
  attributes: [
    text('http.route', '/tempo'),
    { key: 'n', value: { value: { case: 'intValue' as const, value: -(2n ** 62n) } } },
    { key: 'd', value: { value: { case: 'doubleValue' as const, value: 0.5 } } },
    { key: 'yes', value: { value: { case: 'boolValue' as const, value: true } } },
    { key: 'raw', value: { value: { case: 'bytesValue' as const, value: Buffer.from([0xff, 0]) } } },
    {
      key: 'list',
      value: { value: { case: 'arrayValue' as const, value: { values: [text('', 'x').value] } } },
    },
  ],
  droppedAttributesCount: 3,
  events: [
    { timeUnixNano: START + 7n, name: 'retry', attributes: [text('why', 'timeout')], droppedAttributesCount: 4 },
  ],
  links: [
    { traceId: Buffer.alloc(16, 0xab), spanId: Buffer.alloc(8, 2), traceState: 'v=2', attributes: [text('k', 'v')] },
  ],
}
const inner = {
  ...{ spanId: Buffer.alloc(8, 3), parentSpanId: Buffer.alloc(8, 1), name: 'inner', kind: 1 },
  ...{ startTimeUnixNano: START + 10n, endTimeUnixNano: START + 20n, status: {} },
}

describe('a trace by its id, as Tempo returns it', () => {
  it('has everything that an SDK has sent, in protobuf', async () => {
    const traceId = nextTraceId()
    const sent = await storeExport(traceId, [root, inner])
    const { headers, bytes } = await get(`/traces/${traceId}`, { accept: 'application/protobuf' })
    expect(headers.get('content-type')).toBe('application/protobuf')
    expect(fromBinary(TracesDataSchema, bytes)).toEqual(sent)
    // tempopb.TraceByIDResponse has the trace in its first field.
    const second = await get(`/v2/traces/${traceId}`, { accept: 'application/protobuf' })
    expect(second.bytes.at(0)).toBe(0x0a)
    expect(second.bytes.subarray(-bytes.length)).toEqual(bytes)
  })

  it('has ids in base64 and names of kinds, in JSON', async () => {
    const traceId = nextTraceId()
    await storeExport(traceId, [root])
    const { batches } = await read<{ batches: { scopeSpans: { spans: object[] }[] }[] }>(`/traces/${traceId}`)
    expect(batches[0]?.scopeSpans[0]?.spans[0]).toMatchObject({
      traceId: Buffer.from(traceId, 'hex').toString('base64'),
      spanId: Buffer.alloc(8, 1).toString('base64'),
      ...{ name: 'GET /tempo', kind: 'SPAN_KIND_SERVER', startTimeUnixNano: String(START) },
      status: { code: 'STATUS_CODE_ERROR', message: 'declined' },
    })
    expect(await read(`/v2/traces/${traceId}`)).toEqual({ trace: { resourceSpans: batches }, status: 'COMPLETE' })
  })

  it('has a short id, in any case', async () => {
    const traceId = await store([span(1)])
    const short = traceId.replace(/^0+/, '').toUpperCase()
    expect((await get(`/traces/${short}`)).status).toBe(200)
  })

  it('has all spans of a trace of several reads, each once, and says if it is cut', async () => {
    const spans = Array.from({ length: 5_001 }, (_, i) => child(i + 1, i === 0 ? 0 : 1, i))
    const whole = await store([...spans.slice(0, 1_200), span(1)])
    const { bytes } = await get(`/traces/${whole}`, { accept: 'application/protobuf' })
    const shown = fromBinary(TracesDataSchema, bytes).resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(scope => scope.spans),
    )
    expect(shown.map(({ spanId }) => Buffer.from(spanId).readUInt32BE(4))).toEqual(
      Array.from({ length: 1_200 }, (_, i) => i + 1),
    )
    const cut = await store(spans)
    expect(await read(`/v2/traces/${cut}`)).toMatchObject({ status: 'PARTIAL' })
    const second = await get(`/v2/traces/${cut}`, { accept: 'application/protobuf' })
    expect(second.bytes.indexOf('the trace is larger')).toBeGreaterThan(second.bytes.length - 100)
  })

  it('is absent from other workspaces', async () => {
    const traceId = await store([span(1)])
    const bearer = await signToken({ org: 'globex', sub: 'user_2' })
    expect((await get(`/traces/${traceId}`, { bearer })).status).toBe(404)
    expect((await get('/traces/nothing')).status).toBe(404)
  })
})

interface Found {
  readonly traces: readonly { readonly traceID: string }[]
}

describe('a search as Tempo has it', () => {
  it('finds traces by TraceQL and by tags', async () => {
    const traceId = nextTraceId()
    await storeExport(traceId, [root, inner])
    const found = { traceID: traceId, rootServiceName: 'tempo-shop', rootTraceName: 'GET /tempo', durationMs: 250 }
    const queries = [
      { q: '{ resource.service.name = "tempo-shop" && name = "GET /tempo" && status = error && duration > 100ms }' },
      { q: '{.service.name="tempo-shop" && span.http.route=`/tempo` && true}' },
      { q: '{ resource.service.name="tempo-shop" && .yes = true }' },
      { q: '{ span."http.route" = "/tempo" && span:name = "GET /tempo" }' },
      { tags: 'service.name=tempo-shop http.route="/tempo" error=true', minDuration: '200ms' },
    ]
    for (const query of queries) {
      const { traces } = await read<Found>('/search', { ...range, limit: '1', ...query })
      expect({ query, traces }).toMatchObject({ traces: [{ ...found, startTimeUnixNano: String(START) }] })
    }
    for (const query of [
      { q: '{ resource.service.name="tempo-shop" && duration > 1s }' },
      { tags: 'service.name=tempo-shop http.route=/other' },
      { q: '{ resource.service.name="tempo-shop" }', end: String(startSeconds - 10) },
    ]) {
      expect({ query, ...(await read<Found>('/search', { ...range, ...query })) }).toMatchObject({ traces: [] })
    }
  })

  it('offers tags and their values', async () => {
    await storeExport(nextTraceId(), [root])
    const { tagNames } = await read<{ tagNames: string[] }>('/search/tags', range)
    expect(tagNames).toEqual(expect.arrayContaining(['service.name', 'name', 'status', 'http.route']))
    const { scopes } = await read<{ scopes: { name: string; tags: string[] }[] }>('/v2/search/tags', range)
    expect(scopes.find(({ name }) => name === 'span')?.tags).toEqual(expect.arrayContaining(['http.route', 'yes']))
    const values = async (tag: string) =>
      (await read<{ tagValues: string[] }>(`/search/tag/${tag}/values`, range)).tagValues
    expect(await values('service.name')).toContain('tempo-shop')
    expect(await values('.service.name')).toContain('tempo-shop')
    expect(await values('name')).toContain('GET /tempo')
    expect(await values('http.route')).toContain('/tempo')
    expect(await values('nothing')).toEqual([])
    expect(await read('/v2/search/tag/span.http.route/values', range)).toMatchObject({
      tagValues: expect.arrayContaining([{ type: 'string', value: '/tempo' }]),
    })
    expect(await read('/v2/search/tag/status/values', range)).toEqual({
      tagValues: ['unset', 'ok', 'error'].map(value => ({ type: 'keyword', value })),
    })
  })

  it.each([
    [{ q: '{ name = "a" } | rate()' }, /"\|" after the first set of conditions/],
    [{ q: '{ name = "a" || name = "b" }' }, /"\|\|" in q is not supported there/],
    [{ q: '{ name =~ "a.*" }' }, /the operator =~ of name in q is not supported/],
    [{ q: '{ resource.host.name = "one" }' }, /the field resource\.host\.name in q is not supported/],
    [{ q: '{ rootName = "a" }' }, /the field rootName in q is not supported/],
    [{ q: '{ .a = "1" && .b = "2" }' }, /only one condition on attributes of spans/],
    [{ q: '{ status = fine }' }, /a status must be one of unset, ok, error/],
    [{ q: '{ name = "a"' }, /"the end" in q/],
    [{ q: '#' }, /q is not TraceQL/],
    [{ tags: 'a' }, /tags must be pairs/],
    [{ maxDuration: '1s' }, /maxDuration is not supported/],
    [{ minDuration: 'x' }, /minDuration must be a duration/],
    [{ start: 'x' }, /start must be Unix seconds/],
  ])('names what it does not support: %o', async (parameters, message) => {
    const { status, bytes } = await get(`/search?${new URLSearchParams(parameters as Record<string, string>)}`)
    expect({ status, ...JSON.parse(String(bytes)) }).toMatchObject({
      ...{ status: 400, code: 'REQUEST_INVALID', message: expect.stringMatching(message) },
    })
  })
})
