import { describe, expect, it } from 'vitest'
import { insertExceptions, START } from '../../../support/services/api.ts'
import { ask, child, client, FINDING, id, nextTraceId, read, span, store } from './fixture.ts'

describe('a trace with more spans than the limit', () => {
  it('keeps roots, error spans and their ancestors, with counts and times of the whole trace', async () => {
    // A root with 50 children; below the last child is a chain of three spans that ends in an error.
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
    // A parent that was left out still exists, so its child does not count as dangling.
    const [only] = (await read(traceId, '?limit=1')).spans
    expect(only).toMatchObject({ spanId: id(1) })
    expect((await read(traceId, '?limit=55')).truncated).toBe(false)
  })

  it('is returned in the same way with 100,000 spans and duplicates', async () => {
    const traceId = nextTraceId()
    // Span n is below span n / 10; every thousandth is an error; there are nine roots; the first 5,000 were received twice.
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

  it('is returned in part with over a million spans, with the times of the whole', async () => {
    const traceId = nextTraceId()
    // Two roots, one of which starts after all others, and two errors, one of which is among the last spans.
    await client.command({
      query: `INSERT INTO spans (workspace_id, surface_id, received_at, trace_id, span_id, parent_span_id, name, kind,
                service_name, start_time_unix_nano, end_time_unix_nano, status_code)
              SELECT 'ws_1', 'srf_1', now64(3), unhex('${traceId}'), reverse(reinterpretAsFixedString(number)),
                reverse(reinterpretAsFixedString(if(number = 1200000, 0, intDiv(number, 10)))), 'n', 1, 'shop',
                ${START} + number, ${START} + number + 1000, if(number IN (777, 1100000), 2, 0)
              FROM numbers(1, 1200000)`,
      clickhouse_settings: { async_insert: 0 },
    })
    await insertExceptions(client, [{ findingId: FINDING, traceId }])
    const trace = await read(traceId)
    expect(trace).toMatchObject({
      startedAtUnixNano: String(START + 1n),
      endedAtUnixNano: String(START + 1_201_000n),
      wallDurationMs: 1.200_999,
      // These counts are of the first 1,000,000 spans.
      rootCount: 9,
      danglingParentCount: 0,
      truncated: true,
    })
    expect(trace.spans).toHaveLength(2_000)
    expect(trace.spans.filter(({ statusCode }) => statusCode === 'ERROR').map(({ spanId }) => spanId)).toEqual([
      id(777),
    ])
    for (const { parentSpanId, danglingParentSpanId } of trace.spans) {
      expect(danglingParentSpanId).toBeUndefined()
      expect(parentSpanId === undefined || trace.spans.some(({ spanId }) => spanId === parentSpanId)).toBe(true)
    }
  })

  it('leaves out spans whose texts would be too much at once', async () => {
    const long = 'x'.repeat(700_000)
    const traceId = await store(
      Array.from({ length: 30 }, (_, i) => ({ ...child(i + 1, i === 0 ? 0 : 1, i), name: `${i}${long}` })),
    )
    const trace = await read(traceId)
    expect(trace.truncated).toBe(true)
    expect(trace.spans.length).toBeGreaterThanOrEqual(8)
    expect(trace.spans.length).toBeLessThanOrEqual(11)
    expect(trace.spans[0]).toMatchObject({ spanId: id(1) })
  })

  it('counts texts as they are in JSON, where a control character has six bytes', async () => {
    const traceId = await store(
      Array.from({ length: 30 }, (_, i) => ({
        ...child(i + 1, i === 0 ? 0 : 1, i),
        name: `${i}${'\u0001'.repeat(150_000)}`,
      })),
    )
    const trace = await read(traceId)
    expect(trace.spans.length).toBe(9)
    expect(trace.truncated).toBe(true)
  })
})

describe('the limit of spans', () => {
  it.each(['1', '2', '1999', '2000', '0002'])('accepts %s', async limit => {
    const traceId = await store([span(1), child(2, 1, 1), child(3, 1, 2)])
    const trace = await read(traceId, `?limit=${limit}`)
    expect(trace.spans).toHaveLength(Math.min(3, Number(limit)))
  })

  it.each(['0', '2001', '-1', '1.5', '1e3', '', 'all', '99999999999', '%20', '0x10', '１'])(
    'refuses "%s" with a reason',
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
