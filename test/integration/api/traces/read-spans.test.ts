import { randomBytes } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { insertNative } from '../../../../clickhouse/client.ts'
import { SPAN_DETAILS_MAX, type Spans, spansSchema } from '../../../../schemas/http/traces/schemas.ts'
import { ExportTraceServiceRequestSchema } from '../../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { DAY_MS } from '../../../../schemas/units.ts'
import { createSpansBatch } from '../../../../workers/otlp/traces/spans.ts'
import { withExceptions } from '../../../support/oracles/with-exceptions.ts'
import { insertExceptions, START, signToken } from '../../../support/services/api.ts'
import { api, child, client, id, span, store } from './fixture.ts'

const token = await signToken()

async function ask(traceId: string, body: unknown, bearer = token) {
  const response = await fetch(`${api.baseUrl}/v3/traces/${traceId}/spans`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as unknown }
}

async function read(traceId: string, spanIds: readonly string[]): Promise<Spans> {
  const { status, body } = await ask(traceId, { spanIds })
  expect({ status, body }).toMatchObject({ status: 200 })
  return spansSchema.parse(body)
}

/** Stores an export as a worker does. */
async function storeExport(body: Uint8Array): Promise<void> {
  const batch = withExceptions(createSpansBatch())
  const frame = {
    ...{ workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: Date.now(), contentType: 'application/x-protobuf' },
    ...{ contentEncoding: 'identity', attributes: '', body: Buffer.from(body) },
  } as const
  const appended = batch.append(frame, frame.body)
  expect(appended).toMatchObject({ ok: true })
  for (const [i, block] of batch.tables().entries()) {
    const deduplicationToken = `${randomBytes(8).toString('hex')}:${i}`
    await insertNative(client, { ...block, deduplicationToken, timeoutMs: 30_000 })
  }
}

const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })

describe('POST /v3/traces/{traceId}/spans', () => {
  it('shows everything of a span that an SDK has sent', async () => {
    const [traceId, spanId, other] = [randomBytes(16), randomBytes(8), randomBytes(8)]
    const integer = { key: 'n', value: { value: { case: 'intValue' as const, value: -(2n ** 62n) } } }
    const list = { values: [{ value: { case: 'boolValue' as const, value: true } }] }
    const request = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: { attributes: [text('service.name', 'shop'), integer], droppedAttributesCount: 1 },
          schemaUrl: 'https://schema.example/1',
          scopeSpans: [
            {
              scope: { name: 'lib', version: '2', attributes: [text('a', 'b')], droppedAttributesCount: 2 },
              schemaUrl: 'https://schema.example/2',
              spans: [
                {
                  ...{ traceId, spanId, parentSpanId: other, name: 'pay ä', kind: 3, flags: 0x301 },
                  traceState: 'vendor=1',
                  startTimeUnixNano: START,
                  endTimeUnixNano: START + 1_500_000n,
                  status: { code: 2, message: 'declined' },
                  attributes: [
                    text('2', 'second'),
                    text('1', 'first'),
                    integer,
                    { key: 'd', value: { value: { case: 'doubleValue', value: 0.5 } } },
                    { key: 'yes', value: { value: { case: 'boolValue', value: true } } },
                    { key: 'raw', value: { value: { case: 'bytesValue', value: Buffer.from('ÿ') } } },
                    { key: 'list', value: { value: { case: 'arrayValue', value: list } } },
                    { key: 'none' },
                  ],
                  droppedAttributesCount: 3,
                  events: [
                    {
                      ...{ timeUnixNano: START + 7n, name: 'retry', droppedAttributesCount: 4 },
                      attributes: [text('why', 'timeout')],
                    },
                  ],
                  droppedEventsCount: 5,
                  links: [
                    {
                      ...{ traceId: Buffer.alloc(16, 0xab), spanId: other, traceState: 'v=2', flags: 1 },
                      ...{ attributes: [text('kind', 'batch')], droppedAttributesCount: 6 },
                    },
                  ],
                  droppedLinksCount: 7,
                },
              ],
            },
          ],
        },
      ],
    })
    await storeExport(toBinary(ExportTraceServiceRequestSchema, request))
    const [hexTrace, hexSpan, hexOther] = [traceId, spanId, other].map(bytes => bytes.toString('hex')) as [
      string,
      string,
      string,
    ]
    const findingId = `fnd_${'a'.repeat(26)}`
    await insertExceptions(client, [{ traceId: hexTrace, spanId: hexSpan, findingId }])
    const { spans, ...lists } = await read(hexTrace, [hexSpan])
    expect(lists).toEqual({ traceId: hexTrace, rest: [], tooLarge: [], absent: [] })
    expect(spans).toEqual([
      {
        spanId: hexSpan,
        parentSpanId: hexOther,
        name: 'pay ä',
        kind: 'CLIENT',
        serviceName: 'shop',
        startTimeUnixNano: String(START),
        endTimeUnixNano: String(START + 1_500_000n),
        durationMs: 1.5,
        statusCode: 'ERROR',
        statusMessage: 'declined',
        occurrenceCount: 1,
        timestamp: expect.stringMatching(/Z$/),
        surfaceId: 'srf_1',
        receivedAt: expect.stringMatching(/Z$/),
        traceState: 'vendor=1',
        flags: 0x301,
        attributes: [
          { key: '2', type: 'string', value: 'second' },
          { key: '1', type: 'string', value: 'first' },
          { key: 'n', type: 'int', value: String(-(2n ** 62n)) },
          { key: 'd', type: 'double', value: '0.5' },
          { key: 'yes', type: 'bool', value: 'true' },
          { key: 'raw', type: 'bytes', value: Buffer.from('ÿ').toString('base64') },
          { key: 'list', type: 'array', value: '[true]' },
          { key: 'none', type: 'empty', value: '' },
        ],
        droppedAttributesCount: 3,
        events: [
          {
            timeUnixNano: String(START + 7n),
            name: 'retry',
            attributes: [{ key: 'why', type: 'string', value: 'timeout' }],
            droppedAttributesCount: 4,
          },
        ],
        droppedEventsCount: 5,
        links: [
          {
            traceId: 'ab'.repeat(16),
            spanId: hexOther,
            traceState: 'v=2',
            flags: 1,
            attributes: [{ key: 'kind', type: 'string', value: 'batch' }],
            droppedAttributesCount: 6,
          },
        ],
        droppedLinksCount: 7,
        findingIds: [findingId],
        resource: {
          attributes: expect.objectContaining({ 'service.name': 'shop' }),
          droppedAttributesCount: 1,
          schemaUrl: 'https://schema.example/1',
        },
        scope: {
          name: 'lib',
          version: '2',
          attributes: { a: 'b' },
          droppedAttributesCount: 2,
          schemaUrl: 'https://schema.example/2',
        },
      },
    ])
  })

  it('shows the spans in the order of the request, each once, as received first, and names those that are absent', async () => {
    const now = Date.now()
    const traceId = await store([
      { ...span(1), name: 'later', receivedAt: now },
      { ...span(1), name: 'first', receivedAt: now - DAY_MS },
      child(2, 1, 5),
      span(3),
    ])
    const { spans, absent } = await read(traceId, [id(2), id(9), id(1), id(2)])
    expect(spans.map(({ spanId, name, occurrenceCount }) => ({ spanId, name, occurrenceCount }))).toEqual([
      { spanId: id(2), name: `span ${id(2)}`, occurrenceCount: 1 },
      { spanId: id(1), name: 'first', occurrenceCount: 2 },
    ])
    expect(absent).toEqual([id(9)])
  })

  it('leaves spans for the next request when they have more than 4 MiB together, and names those that are larger alone', async () => {
    const traceId = await store(Array.from({ length: 8 }, (_, i) => span(i + 1)))
    const sizes = { [id(3)]: 5_000_000, [id(1)]: 1_500_000, [id(2)]: 1_500_000, [id(4)]: 1_500_000, [id(5)]: 1_500_000 }
    for (const [spanId, bytes] of Object.entries(sizes)) {
      await client.command({
        query: `ALTER TABLE spans UPDATE attribute_keys = '1\\0text\\0', attribute_values = repeat(repeat('x', 1000), ${bytes / 1_000})
                WHERE trace_id = unhex('${traceId}') AND span_id = unhex('${spanId}')`,
        clickhouse_settings: { mutations_sync: '2' },
      })
    }
    const first = await read(traceId, [1, 2, 3, 4, 9, 5, 6].map(id))
    expect(first.spans.map(({ spanId }) => spanId)).toEqual([1, 2].map(id))
    expect(first).toMatchObject({ rest: [4, 5, 6].map(id), tooLarge: [id(3)], absent: [id(9)] })
    const second = await read(traceId, first.rest)
    expect(second.spans.map(({ spanId }) => spanId)).toEqual([4, 5, 6].map(id))
    expect(second.spans[0]?.attributes[0]?.value).toHaveLength(1_500_000)
    expect(second).toMatchObject({ rest: [], tooLarge: [], absent: [] })
  })

  it('is not found when none of the spans is in a trace of the workspace', async () => {
    const traceId = await store([span(1)])
    const unknown = await ask('f'.repeat(32), { spanIds: [id(1)] })
    expect(unknown).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    const theirs = await signToken({ org: 'globex', sub: 'user_2' })
    expect((await ask(traceId, { spanIds: [id(1)] }, theirs)).body).toEqual(unknown.body)
    expect((await ask(traceId, { spanIds: [id(2)] })).body).toEqual(unknown.body)
    expect((await ask('x', { spanIds: [id(1)] })).body).toEqual(unknown.body)
  })

  it.each([
    [{}, /spanIds is required/],
    [{ spanIds: 'x' }, /spanIds must be a list of span ids/],
    [{ spanIds: [] }, /spanIds must have at least one item/],
    [{ spanIds: [id(1), 'X'] }, /spanIds\.1 must have 16 hex digits in lower case/],
    [{ spanIds: Array(SPAN_DETAILS_MAX + 1).fill(id(1)) }, /spanIds must have at most 200 items/],
    [{ spanIds: [id(1)], more: 1 }, /must not have the field "more"/],
    ['{', /the body is not valid JSON/],
  ])('refuses %j', async (body, message) => {
    const answer = await ask('a'.repeat(32), body)
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', message: expect.stringMatching(message), service: 'api-analytics' },
    })
  })
})
