import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import { type Trace, traceSchema } from '../../../schemas/http/traces/schemas.ts'
import {
  createDatabase,
  insertExceptions,
  insertSpans,
  putWorkspace,
  START,
  type StoredSpan,
  sessionPublicKeyPem,
  signToken,
  startApi,
  type TestApi,
} from '../../support/services/api.ts'

const DATABASE = `api_trace_${process.pid}`
const FINDING = `fnd_${'a'.repeat(26)}`
const OTHER_FINDING = `fnd_${'b'.repeat(26)}`

describe('GET /v3/findings/{findingId}/traces/{traceId}', () => {
  const services = inject('services')
  let client: ClickHouseClient
  let api: TestApi
  let token: string
  let traces = 0

  beforeAll(async () => {
    client = await createDatabase(services.clickhouseUrl, DATABASE)
    await putWorkspace(services.redisUrl, { id: 'ws_1', slug: 'acme' })
    await putWorkspace(services.redisUrl, { id: 'ws_2', slug: 'globex', userId: 'user_2' })
    await putWorkspace(services.redisUrl, {
      id: 'ws_1',
      slug: 'acme',
      userId: 'user_limited',
      permissions: ['org:sessions:read'],
    })
    api = await startApi(services, DATABASE)
    token = await signToken()
  })
  afterAll(async () => {
    await api?.stop()
    await client?.command({ query: `DROP DATABASE ${DATABASE}` })
    await client?.close()
  })

  describe('what it answers', () => {
    it('has every field of a span, and leaves out what is absent', async () => {
      const traceId = await store([
        {
          spanId: '00000000000000aa',
          name: 'GET /checkout/:id',
          kind: 2,
          serviceName: 'shop',
          startTimeUnixNano: START + 123_456_789n,
          endTimeUnixNano: START + 123_456_789n + 1_500_001n,
          statusCode: 2,
          statusMessage: 'card declined: "отказ" 🦊',
          sessionId: 'sess-1',
          httpRoute: '/checkout/:id',
          httpStatusCode: 500,
        },
        {
          spanId: '00000000000000ab',
          parentSpanId: '00000000000000aa',
          name: '',
          kind: 0,
          serviceName: '',
          startTimeUnixNano: START + 123_456_790n,
          endTimeUnixNano: START + 123_456_790n,
        },
        {
          spanId: '00000000000000ac',
          parentSpanId: 'ffffffffffffffff',
          startTimeUnixNano: START,
          kind: 9,
          statusCode: 1,
        },
      ])
      expect(await read(traceId)).toEqual({
        traceId,
        spans: [
          {
            spanId: '00000000000000ac',
            danglingParentSpanId: 'ffffffffffffffff',
            name: 'span 00000000000000ac',
            kind: 'UNSPECIFIED',
            serviceName: 'shop',
            startTimeUnixNano: '1790000000000000000',
            endTimeUnixNano: '1790000000001000000',
            durationMs: 1,
            statusCode: 'OK',
            occurrenceCount: 1,
            timestamp: '2026-09-21T14:13:20.000000000Z',
          },
          {
            spanId: '00000000000000aa',
            name: 'GET /checkout/:id',
            kind: 'SERVER',
            serviceName: 'shop',
            startTimeUnixNano: '1790000000123456789',
            endTimeUnixNano: '1790000000124956790',
            durationMs: 1.500001,
            statusCode: 'ERROR',
            statusMessage: 'card declined: "отказ" 🦊',
            sessionId: 'sess-1',
            httpRoute: '/checkout/:id',
            httpStatusCode: 500,
            occurrenceCount: 1,
            timestamp: '2026-09-21T14:13:20.123456789Z',
          },
          {
            spanId: '00000000000000ab',
            parentSpanId: '00000000000000aa',
            name: '',
            kind: 'UNSPECIFIED',
            serviceName: '',
            startTimeUnixNano: '1790000000123456790',
            endTimeUnixNano: '1790000000123456790',
            durationMs: 0,
            statusCode: 'UNSET',
            occurrenceCount: 1,
            timestamp: '2026-09-21T14:13:20.123456790Z',
          },
        ],
        rootCount: 1,
        danglingParentCount: 1,
        startedAtUnixNano: '1790000000000000000',
        endedAtUnixNano: '1790000000124956790',
        wallDurationMs: 124.95679,
        truncated: false,
      })
    })

    it('orders spans by start, then by span id, and names every kind', async () => {
      const spanIds = [
        '00000000000000ff',
        '8000000000000000',
        '0000000000000001',
        'ffffffffffffffff',
        '7f00000000000000',
      ]
      const traceId = await store([
        ...spanIds.map((spanId, kind) => ({ spanId, kind: kind + 1 })),
        { spanId: '1000000000000000', startTimeUnixNano: START - 1n },
      ])
      const { spans } = await read(traceId)
      expect(spans.map(span => span.spanId)).toEqual(['1000000000000000', ...spanIds.toSorted()])
      const kinds = new Map(spans.map(span => [span.spanId, span.kind]))
      expect(spanIds.map(spanId => kinds.get(spanId))).toEqual(['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'])
    })

    it('shows a span received several times once, as it was received first, and counts every time', async () => {
      const at = Date.now()
      const again = { spanId: '00000000000000aa', startTimeUnixNano: START + 5n, statusCode: 2 }
      const traceId = await store([
        { ...again, name: 'second', receivedAt: at + 1 },
        { spanId: '00000000000000aa', name: 'first', receivedAt: at, endTimeUnixNano: START + 10n },
        { ...again, name: 'third', receivedAt: at + 86_400_000, endTimeUnixNano: START + 99_000_000_000n },
        { spanId: '00000000000000ab', parentSpanId: '00000000000000aa', endTimeUnixNano: START + 7n },
      ])
      const trace = await read(traceId)
      expect(trace.spans).toMatchObject([
        { spanId: '00000000000000aa', name: 'first', statusCode: 'UNSET', occurrenceCount: 3 },
        { spanId: '00000000000000ab', occurrenceCount: 1 },
      ])
      expect(trace).toMatchObject({ rootCount: 1, endedAtUnixNano: String(START + 10n), truncated: false })
    })

    it('chooses the same one of duplicates received in the same millisecond every time', async () => {
      const receivedAt = Date.now()
      const names = ['c', 'a', 'b', 'd']
      const traceId = await store(names.map(name => ({ spanId: '00000000000000aa', name, receivedAt })))
      const first = (await read(traceId)).spans[0]
      await client.command({ query: 'OPTIMIZE TABLE spans FINAL' })
      expect((await read(traceId)).spans).toEqual([first])
      expect(first?.occurrenceCount).toBe(4)
    })

    it('is not led round by parents that form a cycle, or by a span that is its own parent', async () => {
      const traceId = await store([
        { spanId: '00000000000000aa', parentSpanId: '00000000000000ab', statusCode: 2 },
        { spanId: '00000000000000ab', parentSpanId: '00000000000000aa' },
        { spanId: '00000000000000ac', parentSpanId: '00000000000000ac' },
      ])
      expect(await read(traceId)).toMatchObject({ rootCount: 0, danglingParentCount: 0, spans: [{}, {}, {}] })
      expect((await read(traceId, '?limit=1')).spans).toMatchObject([{ spanId: '00000000000000aa' }])
    })

    it('takes in the spans of every day, not only of the one the exception was received on', async () => {
      const day = 86_400_000
      const traceId = await store([
        { spanId: '00000000000000aa', receivedAt: Date.now() - 3 * day },
        { spanId: '00000000000000ab', parentSpanId: '00000000000000aa' },
      ])
      expect(await read(traceId)).toMatchObject({ rootCount: 1, danglingParentCount: 0, spans: [{}, {}] })
    })
  })

  describe('a trace with more spans than the limit', () => {
    it('keeps roots, error spans and their ancestors, with counts and times of the whole', async () => {
      // A root with 50 children; under the last of them a chain of three that ends in an error.
      const children = Array.from({ length: 50 }, (_, i) => child(i + 2, 1, i + 1))
      const traceId = await store([
        span(1),
        ...children,
        child(100, 51, 100),
        child(101, 100, 101),
        { ...child(102, 101, 102), statusCode: 2 },
        { ...child(200, 0xdead, 200), endTimeUnixNano: START + 5_000_000_000n },
      ])
      const trace = await read(traceId, '?limit=5')
      expect(trace.spans.map(({ spanId }) => Number.parseInt(spanId, 16))).toEqual([1, 51, 100, 101, 102])
      expect(trace).toMatchObject({
        rootCount: 1,
        danglingParentCount: 1,
        wallDurationMs: 5_000,
        truncated: true,
      })
      // A parent that was left out is retained all the same: it does not dangle.
      const [only] = (await read(traceId, '?limit=1')).spans
      expect(only).toMatchObject({ spanId: id(1) })
      expect((await read(traceId, '?limit=55')).truncated).toBe(false)
    })

    it('answers 100,000 spans with duplicates in the same way', async () => {
      const traceId = nextTraceId()
      // Number n under n / 10; every thousandth is an error; ten roots; the first 5,000 were received twice.
      for (const [count, delayMs] of [
        [100_000, 0],
        [5_000, 1_000],
      ]) {
        await client.command({
          query: `INSERT INTO spans (workspace_id, surface_id, received_at, trace_id, span_id, parent_span_id, name, kind,
                    service_name, start_time_unix_nano, end_time_unix_nano, status_code)
                  SELECT 'ws_1', 'srf_1', now64(3) + toIntervalMillisecond(${delayMs}), unhex('${traceId}'),
                    reverse(reinterpretAsFixedString(number)), reverse(reinterpretAsFixedString(intDiv(number, 10))),
                    concat('n', toString(number)), 1, 'shop', ${START} + number, ${START} + number + 1000,
                    if(number % 1000 = 0, 2, 0)
                  FROM numbers(1, ${count})`,
          clickhouse_settings: { async_insert: 0 },
        })
      }
      await insertExceptions(client, [{ findingId: FINDING, traceId }])

      const started = performance.now()
      const trace = await read(traceId)
      expect(performance.now() - started).toBeLessThan(5_000)
      expect(trace).toMatchObject({
        rootCount: 9,
        danglingParentCount: 0,
        startedAtUnixNano: String(START + 1n),
        endedAtUnixNano: String(START + 101_000n),
        truncated: true,
      })
      expect(trace.spans).toHaveLength(2_000)
      expect(trace.spans.filter(({ statusCode }) => statusCode === 'ERROR')).toHaveLength(100)
      const shown = new Set(trace.spans.map(({ spanId }) => spanId))
      for (const { spanId, parentSpanId, name, occurrenceCount } of trace.spans) {
        expect(name).toBe(`n${Number.parseInt(spanId, 16)}`)
        expect(occurrenceCount).toBe(Number.parseInt(spanId, 16) <= 5_000 ? 2 : 1)
        expect(parentSpanId === undefined || shown.has(parentSpanId)).toBe(true)
      }
      expect(trace.spans.map(({ spanId }) => spanId)).toEqual([...shown].sort())
    })

    it('holds back what would be too much text at once', async () => {
      const long = 'x'.repeat(3_000_000)
      const traceId = await store(
        Array.from({ length: 30 }, (_, i) => ({ ...child(i + 1, i === 0 ? 0 : 1, i), name: `${i}${long}` })),
      )
      const trace = await read(traceId)
      expect(trace.truncated).toBe(true)
      expect(trace.spans.length).toBeGreaterThanOrEqual(8)
      expect(trace.spans.length).toBeLessThanOrEqual(11)
      expect(trace.spans[0]).toMatchObject({ spanId: id(1) })
    })
  })

  describe('the limit', () => {
    it.each(['1', '2', '1999', '2000', '0002'])('takes %s', async limit => {
      const traceId = await store([span(1), child(2, 1, 1), child(3, 1, 2)])
      const trace = await read(traceId, `?limit=${limit}`)
      expect(trace.spans).toHaveLength(Math.min(3, Number(limit)))
    })

    it.each(['0', '2001', '-1', '1.5', '1e3', '', 'all', '99999999999', '%20', '0x10', '１'])(
      'refuses "%s" and says why',
      async limit => {
        const traceId = await store([span(1)])
        expect(await ask(traceId, `?limit=${limit}`)).toEqual({
          status: 400,
          body: {
            code: 'REQUEST_INVALID',
            message: 'limit must be a whole number from 1 to 2000',
            service: 'api-findings',
          },
        })
      },
    )
  })

  describe('what it does not find', () => {
    const notFound = {
      status: 404,
      body: { code: 'FINDING_NOT_FOUND', message: expect.any(String), service: 'api-findings' },
    }

    it('is a malformed finding or trace id, an unknown one, or a trace of another finding', async () => {
      const traceId = await store([span(1)])
      await insertExceptions(client, [{ findingId: OTHER_FINDING, traceId: nextTraceId() }])
      expect(await ask(traceId, '', OTHER_FINDING)).toEqual(notFound)
      expect(await ask(traceId, '', `fnd_${'z'.repeat(26)}`)).toEqual(notFound)
      for (const malformed of ['fnd_', 'x', `fnd_${'a'.repeat(27)}`, `fnd_${'a'.repeat(25)}'`, '%00', '%F0%9F%A6%8A']) {
        expect(await ask(traceId, '', malformed)).toEqual(notFound)
      }
      const malformedTraces = [traceId.slice(1), `${traceId}0`, 'g'.repeat(32), `${traceId.slice(1)}F`, '%27%20OR%201']
      for (const malformed of [...malformedTraces, nextTraceId(), '0'.repeat(32)]) {
        expect(await ask(malformed)).toEqual(notFound)
      }
    })

    it('is a trace whose spans have all expired', async () => {
      const traceId = nextTraceId()
      await insertExceptions(client, [{ findingId: FINDING, traceId }])
      expect(await ask(traceId)).toEqual(notFound)
    })

    it('is anything of another workspace, same ids or not', async () => {
      const traceId = await store([span(1)])
      const own = await signToken({ sub: 'user_2', org: 'globex' })
      expect(await ask(traceId, '', FINDING, own)).toEqual(notFound)
      // The other workspace gets a trace and a finding of the same ids: each sees its own.
      await insertSpans(client, [{ ...span(2), traceId, workspaceId: 'ws_2', name: 'of globex' }])
      await insertExceptions(client, [{ findingId: FINDING, traceId, workspaceId: 'ws_2' }])
      expect((await ask(traceId, '', FINDING, own)).body).toMatchObject({ spans: [{ name: 'of globex' }] })
      expect((await read(traceId)).spans).toMatchObject([{ name: `span ${id(1)}` }])
    })

    it('is everything, to who is no member of the organization or names an unknown one', async () => {
      const traceId = await store([span(1)])
      expect(await ask(traceId, '', FINDING, await signToken({ sub: 'user_2' }))).toEqual(notFound)
      expect(await ask(traceId, '', FINDING, await signToken({ org: 'nowhere' }))).toEqual(notFound)
      expect(await ask(traceId, '?limit=0', FINDING, await signToken({ sub: 'user_2' }))).toEqual(notFound)
    })
  })

  describe('whom it answers', () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: 'https://login.test', aud: 'penstock', sub: 'user_1', org: 'acme', exp: 4_000_000_000 }
    const hs256 = () => {
      const signed = `${part({ alg: 'HS256' })}.${part(claims)}`
      return `${signed}.${createHmac('sha256', sessionPublicKeyPem).update(signed).digest('base64url')}`
    }

    it.each<[string, () => string | Promise<string> | undefined, RegExp]>([
      ['no token', () => undefined, /absent/],
      ['garbage', () => 'garbage', /malformed/],
      ['an expired token', () => signToken({ exp: 1_700_000_000 }), /expired/],
      ['a token of another issuer', () => signToken({ iss: 'https://evil.test' }), /another issuer/],
      ['a token for another audience', () => signToken({ aud: 'elsewhere' }), /another audience/],
      ['a token without a signature', () => `${part({ alg: 'none' })}.${part(claims)}.`, /algorithm/],
      ['a token signed with the public key as a secret', hs256, /algorithm/],
      ['a changed token', async () => (await signToken()).replace(/\.[^.]+\./, `.${part(claims)}.`), /signature/],
    ])('tells %s apart with 401 AUTH_MISSING', async (_, bad, message) => {
      const { status, body } = await ask(nextTraceId(), '', FINDING, (await bad()) ?? null)
      expect(status).toBe(401)
      expect(body).toEqual({ code: 'AUTH_MISSING', message: expect.stringMatching(message), service: 'frontier-auth' })
    })

    it('wants an organization, and the permission', async () => {
      const traceId = await store([span(1)])
      expect(await ask(traceId, '', FINDING, await signToken({ org: undefined }))).toMatchObject({
        status: 403,
        body: { code: 'AUTH_ORG_REQUIRED', service: 'frontier-auth' },
      })
      expect(await ask(traceId, '', FINDING, await signToken({ sub: 'user_limited' }))).toMatchObject({
        status: 403,
        body: { code: 'PERMISSION_DENIED', message: expect.stringContaining('org:findings:read') },
      })
    })

    it('takes nothing but GET and HEAD', async () => {
      const url = `${api.baseUrl}/v3/findings/${FINDING}/traces/${nextTraceId()}`
      const response = await fetch(url, { method: 'POST', body: '{}' })
      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
    })
  })

  function nextTraceId(): string {
    return (0xabc_0000 + traces++).toString(16).padStart(32, '0')
  }

  async function store(spans: Omit<StoredSpan, 'traceId'>[]): Promise<string> {
    const traceId = nextTraceId()
    await insertSpans(
      client,
      spans.map(stored => ({ ...stored, traceId })),
    )
    await insertExceptions(client, [{ findingId: FINDING, traceId }])
    return traceId
  }

  async function read(traceId: string, query = ''): Promise<Trace> {
    const { status, body } = await ask(traceId, query)
    expect({ status, body }).toMatchObject({ status: 200 })
    return traceSchema.parse(body)
  }

  async function ask(traceId: string, query = '', findingId = FINDING, bearer: string | null = token) {
    const response = await fetch(`${api.baseUrl}/v3/findings/${findingId}/traces/${traceId}${query}`, {
      headers: bearer === null ? {} : { authorization: `Bearer ${bearer}` },
    })
    expect(response.headers.get('content-type')).toBe('application/json')
    return { status: response.status, body: (await response.json()) as unknown }
  }

  const id = (number: number) => number.toString(16).padStart(16, '0')
  const span = (number: number) => ({ spanId: id(number) })
  const child = (number: number, parent: number, startsAfter: number) => ({
    spanId: id(number),
    parentSpanId: parent === 0 ? '' : id(parent),
    startTimeUnixNano: START + BigInt(startsAfter),
  })
})
