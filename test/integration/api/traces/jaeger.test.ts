import { describe, expect, it } from 'vitest'
import { type JaegerTrace, jaegerTracesSchema } from '../../../../schemas/http/grafana/jaeger.ts'
import { insertSpans, START, signToken } from '../../../support/services/api.ts'
import { api, child, client, id, nextTraceId, span, store } from './fixture.ts'

const token = await signToken()
const startMicros = Number(START / 1_000n)
const range = { start: String(startMicros - 60_000_000), end: String(startMicros + 60_000_000) }

async function ask(path: string, parameters: Record<string, string> = {}, bearer = token) {
  const response = await fetch(`${api.baseUrl}/jaeger/api${path}?${new URLSearchParams(parameters)}`, {
    headers: { authorization: `Bearer ${bearer}` },
  })
  return { status: response.status, body: (await response.json()) as { data: unknown[] } }
}

async function readTraces(path: string, parameters: Record<string, string> = {}): Promise<JaegerTrace[]> {
  const { status, body } = await ask(path, parameters)
  expect({ status, body }).toMatchObject({ status: 200 })
  return jaegerTracesSchema.parse(body).data
}

interface SizedTrace {
  readonly spans: number
  /** How often each span was received. */
  readonly copies: number
  /** Bytes of a text of each span. */
  readonly bytes: number
  /** Whether it is larger than a response. */
  readonly cut?: boolean
}

describe('the interface of Jaeger', () => {
  it('returns a trace with its spans, references and processes', async () => {
    const traceId = nextTraceId()
    await insertSpans(client, [
      { traceId, ...span(1), name: 'GET /cart', kind: 2, statusCode: 2, statusMessage: 'declined' },
      { traceId, ...child(2, 1, 5_000), serviceName: 'stock', endTimeUnixNano: START + 2_000_000n },
    ])
    expect(await readTraces(`/traces/${traceId}`)).toEqual([
      {
        traceID: traceId,
        spans: [
          {
            ...{ traceID: traceId, spanID: id(1), flags: 0, operationName: 'GET /cart', references: [] },
            ...{ startTime: startMicros, duration: 1_000, logs: [], processID: 'p1', warnings: null },
            tags: [
              { key: 'span.kind', type: 'string', value: 'server' },
              { key: 'otel.status_code', type: 'string', value: 'ERROR' },
              { key: 'error', type: 'bool', value: true },
              { key: 'otel.status_description', type: 'string', value: 'declined' },
            ],
          },
          {
            ...{ traceID: traceId, spanID: id(2), flags: 0, operationName: `span ${id(2)}` },
            references: [{ refType: 'CHILD_OF', traceID: traceId, spanID: id(1) }],
            ...{ startTime: startMicros + 5, duration: 1_995, logs: [], processID: 'p2', warnings: null },
            tags: [{ key: 'span.kind', type: 'string', value: 'internal' }],
          },
        ],
        processes: { p1: { serviceName: 'shop', tags: [] }, p2: { serviceName: 'stock', tags: [] } },
        warnings: null,
      },
    ])
    expect(await readTraces(`/traces/${traceId.replace(/^0+/, '')}`)).toHaveLength(1)
    expect((await ask(`/traces/${traceId}`, {}, await signToken({ org: 'globex', sub: 'user_2' }))).status).toBe(404)
    expect((await ask('/traces/nothing')).status).toBe(404)
  })

  it('shows of a span that was received several times the row that came first, alike in small and in large traces', async () => {
    const receivedAt = Date.now() - 5_000
    const first = { ...span(1), name: 'first', receivedAt }
    // Rows of the same millisecond are ordered by what they contain.
    const alike = [
      { ...child(3, 1, 2_000), name: 'b' },
      { ...child(3, 1, 2_000), name: 'a' },
    ]
    const later = { ...first, startTimeUnixNano: START - 10_000n, name: 'later', receivedAt: receivedAt + 1 }
    const rows = [later, { ...child(2, 1, 1_000), receivedAt }, first, ...alike.map(row => ({ ...row, receivedAt }))]
    const fillers = Array.from({ length: 600 }, (_, i) => ({ ...child(i + 10, 1, 9_000), receivedAt }))
    const names = []
    for (const spans of [rows, rows.toReversed(), [...rows, ...fillers]]) {
      const traceId = nextTraceId()
      await insertSpans(
        client,
        spans.map(row => ({ traceId, ...row })),
      )
      const [trace] = await readTraces(`/traces/${traceId}`)
      expect(trace?.spans).toHaveLength(spans.length - 2)
      names.push(trace?.spans.slice(0, 3).map(({ operationName }) => operationName))
    }
    expect(names[0]?.slice(0, 2)).toEqual(['first', `span ${id(2)}`])
    expect(names[1]).toEqual(names[0])
    expect(names[2]).toEqual(names[0])
  })

  it.each([
    ['500 rows', { spans: 500, copies: 1, bytes: 10 }],
    ['501 rows', { spans: 501, copies: 1, bytes: 10 }],
    ['600 rows of 300 spans', { spans: 300, copies: 2, bytes: 10 }],
    ['more bytes than one query may return', { spans: 300, copies: 1, bytes: 20_000 }],
    ['spans of one start that need much memory to be ordered', { spans: 2_000, copies: 1, bytes: 100_000, cut: true }],
  ])('returns a trace of %s by its id', async (_, { spans, copies, bytes, cut = false }: SizedTrace) => {
    const traceId = nextTraceId()
    const message = 'x'.repeat(bytes)
    const rows = Array.from({ length: spans }, (_, i) => ({
      traceId,
      ...child(i + 1, i && 1, 0),
      statusMessage: message,
    }))
    for (let copy = 0; copy < copies; copy++) await insertSpans(client, rows)
    const [trace] = await readTraces(`/traces/${traceId}`)
    if (cut) expect(trace?.warnings).toHaveLength(1)
    else expect(trace).toMatchObject({ warnings: null })
    const found = new Set(trace?.spans.map(({ spanID }) => spanID))
    expect(found.size).toBe(trace?.spans.length)
    if (!cut) expect(found.size).toBe(spans)
  })

  it('finds the traces of a service, with their spans', async () => {
    const traceId = nextTraceId()
    await insertSpans(client, [
      {
        traceId,
        ...span(1),
        serviceName: 'jaeger-shop',
        name: 'pay',
        statusCode: 2,
        endTimeUnixNano: START + 90_000_000n,
      },
    ])
    const found = { service: 'jaeger-shop', operation: 'pay', tags: '{"error":"true"}', minDuration: '80ms', ...range }
    expect(await readTraces('/traces', found)).toMatchObject([{ traceID: traceId, spans: [{ operationName: 'pay' }] }])
    for (const other of [
      { minDuration: '100ms' },
      { operation: 'other' },
      { tags: '{"http.route":"/x"}' },
      { end: range.start },
    ]) {
      expect({ other, found: await readTraces('/traces', { ...found, ...other }) }).toEqual({ other, found: [] })
    }
  })

  it('names services and operations', async () => {
    await insertSpans(client, [{ traceId: nextTraceId(), ...span(1), serviceName: 'jaeger/names', name: 'GET /names' }])
    await insertSpans(client, [{ traceId: nextTraceId(), ...span(1), serviceName: 'theirs', workspaceId: 'ws_2' }])
    const { data } = (await ask('/services')).body
    expect(data).toContain('jaeger/names')
    expect(data).not.toContain('theirs')
    expect((await ask('/services/jaeger%2Fnames/operations')).body).toEqual({
      ...{ data: ['GET /names'], total: 1, limit: 0, offset: 0, errors: null },
    })
    expect((await ask('/operations', { service: 'jaeger/names' })).body.data).toEqual([
      { name: 'GET /names', spanKind: '' },
    ])
    expect((await ask('/services/nothing/operations')).body.data).toEqual([])
  })

  it('shares the spans of a response among the traces of a search, and says that one is cut', async () => {
    const spans = Array.from({ length: 3_000 }, (_, i) => ({
      ...child(i + 1, i === 0 ? 0 : 1, i),
      serviceName: 'jaeger-large',
    }))
    await store(spans)
    await store(spans)
    const found = await readTraces('/traces', { service: 'jaeger-large', ...range })
    expect(found.map(trace => [trace.spans.length, trace.warnings?.length])).toEqual([
      [2_500, 1],
      [2_500, 1],
    ])
  })

  it.each([
    [{}, /^service is required/],
    [{ service: 'a', tags: '[1]' }, /^tags must be a JSON object/],
    [{ service: 'a', tags: '{"a":{}}' }, /^tags must be a JSON object/],
    [{ service: 'a', tags: '{"a":"1","b":"2"}' }, /only one condition on attributes of spans/],
    [{ service: 'a', maxDuration: '1s' }, /^maxDuration is not supported/],
    [{ service: 'a', minDuration: '1' }, /^minDuration must be a duration/],
    [{ service: 'a', start: 'now' }, /^start must be Unix microseconds/],
  ])('names what it does not support: %o', async (parameters, message) => {
    const { status, body } = await ask('/traces', parameters as Record<string, string>)
    expect({ status, body }).toMatchObject({
      ...{ status: 400, body: { code: 'REQUEST_INVALID', message: expect.stringMatching(message) } },
    })
  })
})
