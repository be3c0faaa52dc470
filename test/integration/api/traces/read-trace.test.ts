import { describe, expect, it } from 'vitest'
import { DAY_MS } from '../../../../schemas/units.ts'
import { START } from '../../../support/services/api.ts'
import { client, read, store } from './fixture.ts'

describe('GET /v3/findings/{findingId}/traces/{traceId}', () => {
  it('returns every field of a span and leaves absent fields out', async () => {
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
        httpStatusCode: 65_535,
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
          httpStatusCode: 0,
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

  it('orders spans by start and then by span id, and names every kind', async () => {
    const spanIds = ['00000000000000ff', '8000000000000000', '0000000000000001', 'ffffffffffffffff', '7f00000000000000']
    const traceId = await store([
      ...spanIds.map((spanId, kind) => ({ spanId, kind: kind + 1 })),
      { spanId: '1000000000000000', startTimeUnixNano: START - 1n },
    ])
    const { spans } = await read(traceId)
    expect(spans.map(span => span.spanId)).toEqual(['1000000000000000', ...spanIds.toSorted()])
    const kinds = new Map(spans.map(span => [span.spanId, span.kind]))
    expect(spanIds.map(spanId => kinds.get(spanId))).toEqual(['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'])
  })

  it('shows a span that was received several times once, as first received, with its count', async () => {
    const at = Date.now()
    const again = { spanId: '00000000000000aa', startTimeUnixNano: START + 5n, statusCode: 2 }
    const traceId = await store([
      { ...again, name: 'second', receivedAt: at + 1 },
      { spanId: '00000000000000aa', name: 'first', receivedAt: at, endTimeUnixNano: START + 10n },
      { ...again, name: 'third', receivedAt: at + DAY_MS, endTimeUnixNano: START + 99_000_000_000n },
      { spanId: '00000000000000ab', parentSpanId: '00000000000000aa', endTimeUnixNano: START + 7n },
    ])
    const trace = await read(traceId)
    expect(trace.spans).toMatchObject([
      { spanId: '00000000000000aa', name: 'first', statusCode: 'UNSET', occurrenceCount: 3 },
      { spanId: '00000000000000ab', occurrenceCount: 1 },
    ])
    expect(trace).toMatchObject({ rootCount: 1, endedAtUnixNano: String(START + 10n), truncated: false })
  })

  it('always chooses the same of several duplicates received in the same millisecond', async () => {
    const receivedAt = Date.now()
    const names = ['c', 'a', 'b', 'd']
    const traceId = await store(names.map(name => ({ spanId: '00000000000000aa', name, receivedAt })))
    const first = (await read(traceId)).spans[0]
    await client.command({ query: 'OPTIMIZE TABLE spans FINAL' })
    expect((await read(traceId)).spans).toEqual([first])
    expect(first?.occurrenceCount).toBe(4)
  })

  it('ends when parents form a cycle or a span is its own parent', async () => {
    const traceId = await store([
      { spanId: '00000000000000aa', parentSpanId: '00000000000000ab', statusCode: 2 },
      { spanId: '00000000000000ab', parentSpanId: '00000000000000aa' },
      { spanId: '00000000000000ac', parentSpanId: '00000000000000ac' },
    ])
    expect(await read(traceId)).toMatchObject({ rootCount: 0, danglingParentCount: 0, spans: [{}, {}, {}] })
    expect((await read(traceId, '?limit=1')).spans).toMatchObject([{ spanId: '00000000000000aa' }])
  })

  it('includes spans of every day, not only of the day when the exception was received', async () => {
    const traceId = await store([
      { spanId: '00000000000000aa', receivedAt: Date.now() - 3 * DAY_MS },
      { spanId: '00000000000000ab', parentSpanId: '00000000000000aa' },
    ])
    expect(await read(traceId)).toMatchObject({ rootCount: 1, danglingParentCount: 0, spans: [{}, {}] })
  })
})
