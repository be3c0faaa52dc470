import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { beforeEach, describe, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { SpanSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { leastCpuMs } from '../../../test/support/least-cpu-ms.ts'
import { readBlock, rowsOf } from '../../../test/support/oracles/read-block.ts'
import { wholeRow } from '../../../test/support/oracles/whole-row.ts'
import { withExceptions } from '../../../test/support/oracles/with-exceptions.ts'
import { createSpansBatch } from './spans.ts'

type SpanInit = MessageInitShape<typeof SpanSchema>

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
const IDS = { traceId: new Uint8Array(16).fill(1), spanId: new Uint8Array(8).fill(2) }
const text = (key: string, value: string) => ({ key, value: { value: { case: 'stringValue' as const, value } } })
const int = (key: string, value: bigint) => ({ key, value: { value: { case: 'intValue' as const, value } } })
const exception = (...attributes: ReturnType<typeof text>[]) => ({ name: 'exception', timeUnixNano: 5n, attributes })

function payload(spans: SpanInit[], service = 'shop'): Buffer {
  const request = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: { attributes: [text('service.name', service)] },
        scopeSpans: [{ spans: spans.map(span => ({ ...IDS, ...span })) }],
      },
    ],
  })
  return Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
}

describe('a batch of spans', () => {
  const batch = withExceptions(createSpansBatch())
  beforeEach(() => batch.reset())

  function rows(table: string) {
    const found = batch.tables().find(block => block.table === table)
    return found ? rowsOf(readBlock(Buffer.concat(found.block))).map(wholeRow) : []
  }

  it('is empty without payloads, and after an empty one', () => {
    expect(batch.append(ORIGIN, Buffer.alloc(0))).toEqual({ ok: true, rows: 0, rejected: {} })
    expect([batch.rows, batch.tables()]).toEqual([0, []])
  })

  it.each<[string, SpanInit, string]>([
    ['no trace id', { traceId: new Uint8Array() }, 'invalid_trace_id'],
    ['a trace id of zeros', { traceId: new Uint8Array(16) }, 'invalid_trace_id'],
    ['a trace id of 8 bytes', { traceId: new Uint8Array(8).fill(1) }, 'invalid_trace_id'],
    ['a span id of zeros', { spanId: new Uint8Array(8) }, 'invalid_span_id'],
    ['a span id of 16 bytes', { spanId: new Uint8Array(16).fill(1) }, 'invalid_span_id'],
    ['a parent id of 4 bytes', { parentSpanId: new Uint8Array(4).fill(1) }, 'invalid_parent_span_id'],
  ])('leaves out only the span with %s', (_, invalid, reason) => {
    const full = {
      attributes: [text('a', 'b')],
      events: [exception(text('exception.type', 'E'))],
      links: [{ traceState: 'x' }],
    }
    const body = payload([
      { name: 'first', ...full },
      { ...full, name: 'bad', ...invalid },
      { name: 'last', ...full },
    ])
    expect(batch.append(ORIGIN, body)).toEqual({
      ok: true,
      rows: 2,
      rejected: { [reason]: { count: 1, indexes: [1] } },
    })
    const [first, last] = rows('spans')
    expect(last).toEqual({ ...first, name: 'last' })
    expect(rows('exceptions').map(row => row.span_name)).toEqual(['first', 'last'])
  })

  it('reports the positions of the first 1,000 spans left out for a reason, over all scopes and resources', () => {
    const spans = Array.from({ length: 1_500 }, (_, i) =>
      i % 3 === 0 ? { name: 'good' } : { spanId: new Uint8Array(3) },
    )
    const body = Buffer.concat([payload(spans), payload([{ traceId: new Uint8Array(16) }, { name: 'last' }])])
    const indexes = Array.from({ length: 1_500 }, (_, i) => i).filter(i => i % 3 !== 0)
    expect(indexes.length).toBe(1_000)
    const invalid_span_id = { count: 1_000, indexes }
    const invalid_trace_id = { count: 1, indexes: [1_500] }
    expect(batch.append(ORIGIN, body)).toEqual({ ok: true, rows: 501, rejected: { invalid_span_id, invalid_trace_id } })
    const more = payload(Array.from({ length: 1_200 }, () => ({ spanId: new Uint8Array(3) })))
    const first = Array.from({ length: 1_000 }, (_, i) => i)
    const rejected = { invalid_span_id: { count: 1_200, indexes: first } }
    expect(batch.append(ORIGIN, more)).toEqual({ ok: true, rows: 0, rejected })
  })

  it('treats a parent id of zeros as that of a root', () => {
    batch.append(ORIGIN, payload([{ parentSpanId: new Uint8Array(8) }]))
    expect(rows('spans')[0]?.parent_span_id).toBe('0'.repeat(16))
  })

  it('is unchanged by a refused payload', () => {
    batch.append(ORIGIN, payload([{ name: 'kept', events: [exception()] }]))
    const before = [batch.bytes, rows('spans'), rows('exceptions')]
    const other = payload([{ name: 'lost', events: [exception()] }, { name: 'cut' }], 'other service')
    expect(batch.append(ORIGIN, other.subarray(0, other.length - 1))).toEqual({ ok: false, reason: 'truncated' })
    expect([batch.bytes, rows('spans'), rows('exceptions')]).toEqual(before)
    batch.append(ORIGIN, payload([{ name: 'next' }], 'third service'))
    expect(rows('spans').map(row => [row.name, row.service_name])).toEqual([
      ['kept', 'shop'],
      ['next', 'third service'],
    ])
  })

  it('keeps nothing of a list in which a payload was refused', () => {
    const list = (...texts: string[]) => ({
      key: 'list',
      value: {
        value: {
          case: 'arrayValue' as const,
          value: { values: texts.map(value => ({ value: { case: 'stringValue' as const, value } })) },
        },
      },
    })
    const broken = payload([{ attributes: [list('lost', 'XXXX')] }])
    // The length of the last text reaches past its end.
    broken[broken.indexOf('XXXX') - 1] = 0x7f
    expect(batch.append(ORIGIN, broken)).toEqual({ ok: false, reason: 'truncated' })
    batch.append(ORIGIN, payload([{ attributes: [list('kept')] }]))
    expect(rows('spans')[0]?.attributes).toEqual([['list', '["kept"]']])
  })

  it('keeps keys apart that are no UTF-8', () => {
    const withKey = (byte: number) => {
      const body = payload([{ attributes: [text('XXXX', 'v')] }])
      body.fill(byte, body.indexOf('XXXX'), body.indexOf('XXXX') + 4)
      return body
    }
    for (const byte of [0xfe, 0xff]) batch.append(ORIGIN, withKey(byte))
    expect(rows('spans').map(row => row.attributes)).toEqual([[['\xfe'.repeat(4), 'v']], [['\xff'.repeat(4), 'v']]])
  })

  it('refuses a payload whose rows are many times its size and accepts the next', () => {
    // Two bytes are an event, whose row has 29.
    const spanBytes = Buffer.concat([
      Buffer.from([0x0a, 16, ...IDS.traceId, 0x12, 8, ...IDS.spanId]),
      Buffer.alloc(40_000_000, Buffer.from([0x5a, 0])),
    ])
    const wrap = (tag: number, content: Buffer) => {
      const length = [0, 7, 14, 21].map((shift, i) => ((content.length >>> shift) & 0x7f) | (i < 3 ? 0x80 : 0))
      return Buffer.concat([Buffer.from([tag, ...length]), content])
    }
    expect(batch.append(ORIGIN, wrap(0x0a, wrap(0x12, wrap(0x12, spanBytes))))).toEqual({
      ok: false,
      reason: 'rows_too_large',
    })
    expect(batch.append(ORIGIN, payload([{}]))).toMatchObject({ ok: true, rows: 1 })
  })

  it.each<[string, SpanInit['attributes'], object]>([
    ['session.id', [text('session.id', 's1')], { session_id: 's1' }],
    ['a numeric session.id', [int('session.id', 42n)], { session_id: '42' }],
    ['the last of two', [text('session.id', 's1'), text('session.id', 's2')], { session_id: 's2' }],
    ['http.route', [text('http.route', '/a/:b')], { http_route: '/a/:b' }],
    ['a status', [int('http.response.status_code', 404n)], { http_status_code: 404 }],
    ['a status in the older name', [int('http.status_code', 200n)], { http_status_code: 200 }],
    ['a status as text', [text('http.status_code', '503')], { http_status_code: 503 }],
    [
      'the newer name first',
      [int('http.response.status_code', 500n), int('http.status_code', 200n)],
      { http_status_code: 500 },
    ],
    ['the status 0', [int('http.response.status_code', 0n)], { http_status_code: 65_535 }],
    [
      'the status 0 before the older name',
      [int('http.response.status_code', 0n), int('http.status_code', 200n)],
      { http_status_code: 65_535 },
    ],
    ['no status of -1', [int('http.response.status_code', -1n)], { http_status_code: 0 }],
    ['no status of 32768', [int('http.response.status_code', 32_768n)], { http_status_code: 0 }],
    ['no status of letters', [text('http.status_code', '2xx')], { http_status_code: 0 }],
  ])('promotes %s', (_, attributes = [], columns) => {
    batch.append(ORIGIN, payload([{ attributes }]))
    expect(rows('spans')[0]).toMatchObject(columns)
  })

  it('cuts the texts of keys between characters, and keeps the whole attributes', () => {
    const long = 'é'.repeat(40_000)
    const request = create(ExportTraceServiceRequestSchema, {
      resourceSpans: [
        {
          resource: { attributes: [text('service.name', long), text('service.version', `x${long}`)] },
          schemaUrl: long,
          scopeSpans: [
            {
              scope: { name: long, version: long },
              schemaUrl: long,
              spans: [{ ...IDS, attributes: [text('http.route', `x${long}`), text('session.id', 'é'.repeat(1_024))] }],
            },
          ],
        },
      ],
    })
    batch.append(ORIGIN, Buffer.from(toBinary(ExportTraceServiceRequestSchema, request)))
    const bytes = (value: string) => Buffer.from(value).toString('latin1')
    const [row] = rows('spans')
    expect(row).toMatchObject({
      service_name: bytes('é'.repeat(512)),
      service_version: bytes(`x${'é'.repeat(127)}`),
      scope_name: bytes('é'.repeat(512)),
      scope_version: bytes('é'.repeat(512)),
      resource_schema_url: bytes('é'.repeat(1_024)),
      scope_schema_url: bytes('é'.repeat(1_024)),
      http_route: bytes(`x${'é'.repeat(511)}`),
      session_id: bytes('é'.repeat(1_024)),
      resource: bytes(`{"service.name":"${long}","service.version":"x${long}"}`),
    })
    expect(row?.attributes).toContainEqual(['http.route', bytes(`x${long}`)])
  })

  it('stores a span without its session when the id has over 1,024 characters, and counts it', () => {
    const attributes = [text('session.id', 'a'.repeat(1_025))]
    const failed = { attributes, status: { code: 2 as const } }
    expect(batch.append(ORIGIN, payload([failed, {}]))).toEqual({
      ok: true,
      rows: 2,
      rejected: { session_id_too_long: { count: 1, indexes: [] } },
    })
    expect(rows('spans')[0]).toMatchObject({ session_id: '', attributes: [['session.id', 'a'.repeat(1_025)]] })
    expect(rows('failures')[0]).toMatchObject({ session_id: '' })
    expect(batch.append(ORIGIN, payload([{}]))).toEqual({ ok: true, rows: 1, rejected: {} })
  })

  it('derives occurrences of at most 200 findings from a payload, the same ones each time, and keeps every span', () => {
    const letters = (i: number) => String.fromCharCode(97 + (i % 26), 97 + (Math.floor(i / 26) % 26))
    const spans = Array.from({ length: 300 }, (_, i) => ({ events: [exception(text('exception.type', letters(i)))] }))
    const body = payload([...spans, ...spans])
    const append = () => {
      batch.reset()
      const rejected = { findings_over_limit: { count: 200, indexes: [] } }
      expect(batch.append(ORIGIN, body)).toEqual({ ok: true, rows: 600, rejected })
      return rows('exceptions').map(row => row.type)
    }
    const types = append()
    expect(types).toEqual([...Array(2)].flatMap(() => Array.from({ length: 200 }, (_, i) => letters(i))))
    expect(append()).toEqual(types)
  })

  it('converts a resource once for any order of its attributes', () => {
    const attributes = [text('service.name', 'shop'), text('b', '2'), text('a', '1')]
    for (const order of [attributes, attributes.toReversed()]) {
      const request = create(ExportTraceServiceRequestSchema, {
        resourceSpans: [{ resource: { attributes: order }, scopeSpans: [{ spans: [IDS] }] }],
      })
      batch.append(ORIGIN, Buffer.from(toBinary(ExportTraceServiceRequestSchema, request)))
    }
    expect(new Set(rows('spans').map(row => row.resource))).toEqual(
      new Set(['{"a":"1","b":"2","service.name":"shop"}']),
    )
  })

  it('derives an occurrence from each exception event, or from a failed span without one', () => {
    const failed = {
      status: { code: 2, message: 'no order' },
      endTimeUnixNano: 9n,
      attributes: [text('session.id', 's1')],
    }
    const event = exception(
      text('exception.type', 'E'),
      text('exception.message', 'm'),
      text('exception.escaped', 'true'),
    )
    batch.append(
      ORIGIN,
      payload([{ name: 'both', ...failed, events: [event, event] }, { name: 'status', ...failed }, { name: 'fine' }]),
    )
    expect(rows('exceptions')).toMatchObject([
      {
        source: 1,
        span_name: 'both',
        type: 'E',
        message: 'm',
        escaped: true,
        occurred_at_unix_nano: 5n,
        session_id: 's1',
      },
      { source: 1, span_name: 'both', type: 'E', message: 'm' },
    ])
    expect(rows('failures')).toMatchObject([
      {
        source: 3,
        span_name: 'status',
        type: 'status',
        message: 'no order',
        occurred_at_unix_nano: 9n,
        stacktrace: '',
      },
    ])
    const ids = [...rows('exceptions'), ...rows('failures')].map(row => row.finding_id)
    expect([ids[0] === ids[1], ids[0] === ids[2]]).toEqual([true, false])
  })

  it('keeps 32 KiB of a stack trace as an occurrence, and all of it in its event', () => {
    const stack = `${'é'.repeat(20_000)}end`
    batch.append(ORIGIN, payload([{ events: [exception(text('exception.stacktrace', stack))] }]))
    const bytes = (value: unknown) => Buffer.from(String(value), 'latin1').toString()
    const kept = bytes(rows('exceptions')[0]?.stacktrace)
    expect(kept.length).toBeGreaterThan(16_000)
    expect(kept).toMatch(/^é+\n {4}… \d+ bytes left out …\né+end$/)
    const [span] = rows('spans') as unknown as { events: { attributes: [string, string][] }[] }[]
    expect(bytes(span?.events[0]?.attributes[0]?.[1])).toBe(stack)
  })

  it('derives at most 10,000 occurrences from a payload, counts the rest, and stays fast', () => {
    const storm = Array.from({ length: 12_000 }, (_, i) => ({
      events: [exception(text('exception.message', `message ${'x'.repeat(i % 50)}`))],
    }))
    const body = payload(storm)
    const append = () => {
      batch.reset()
      const rejected = { exceptions_over_limit: { count: 2_000, indexes: [] } }
      expect(batch.append(ORIGIN, body)).toEqual({ ok: true, rows: 12_000, rejected })
    }
    expect(leastCpuMs(append, 1_000)).toBeLessThan(1_000)
    expect(rows('exceptions')).toHaveLength(10_000)
  })
})
