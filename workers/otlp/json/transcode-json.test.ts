import { describe, expect, it } from 'vitest'
import { MIB } from '../../../schemas/units.ts'
import {
  anyValue,
  anyValueOf,
  pointField,
  readTraces,
  spanField,
} from '../../../test/support/oracles/read-otlp-json.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { createSpansBatch } from '../traces/spans.ts'
import { createJsonTranscoder } from './transcode-json.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as never
const transcoder = createJsonTranscoder()

describe('the whole body', () => {
  it.each(['', '  ', '{}', ' \r\n\t{ } \n', '\ufeff', '\ufeff{}', '{"resourceSpans":[]}', '{"resourceSpans":null}'])(
    'is an empty export: %j',
    text => {
      expect(transcoder.transcode('traces', Buffer.from(text))).toEqual({
        ok: true,
        message: Buffer.alloc(0),
        leftOut: 0,
      })
    },
  )

  it.each(['{"futureField":1}', '{"resource_logs":[{}]}', '{"instrumentationLibrarySpans":[{}],"resourceSpans":[]}'])(
    'of unknown fields has no records: %s',
    text => expect(readTraces(text)).toBe('no_records'),
  )

  it.each([
    ['[]', 'invalid_json_value'],
    ['null', 'invalid_json_value'],
    ['"{}"', 'invalid_json_value'],
    ['1', 'invalid_json_value'],
    ['{', 'invalid_json'],
    ['}', 'invalid_json'],
    ['{}{}', 'invalid_json'],
    ['{} x', 'invalid_json'],
    ['{}\0', 'invalid_json'],
    ['\0{}', 'invalid_json'],
    ['{,}', 'invalid_json'],
    ['{"a":1,}', 'invalid_json'],
    ['{"a" 1}', 'invalid_json'],
    ['{"a":}', 'invalid_json'],
    ['{a:1}', 'invalid_json'],
    ["{'a':1}", 'invalid_json'],
    ['{"a":1 "b":2}', 'invalid_json'],
    ['{"a":[1,]}', 'invalid_json'],
    ['{"a":[1}', 'invalid_json'],
    ['{"a":{]}', 'invalid_json'],
    ['{"a":tru}', 'invalid_json'],
    ['{"a":nul', 'invalid_json'],
    ['{"a":// comment\n1}', 'invalid_json'],
    ['{"resourceSpans":[{}', 'invalid_json'],
    ['{"resourceSpans":[{},]}', 'invalid_json'],
    ['{"resourceSpans":?}', 'invalid_json'],
    ['{"resourceSpans"}', 'invalid_json'],
    ['{"resourceSpans":{}}', 'invalid_json_value'],
    ['{"resourceSpans":[[]]}', 'invalid_json_value'],
    ['{"resourceSpans":[7,null],"a":1}', 'invalid_json_value'],
  ])('is refused: %j', (text, reason) => expect(readTraces(text)).toBe(reason))

  it.each(['01', '-', '+1', '.5', '1.', '1.e1', '1e', '1e+', '0x1', '1_0', 'NaN', 'Infinity', '- 1'])(
    'is refused for what is no JSON number, in a known field or not: %s',
    text => {
      for (const padding of ['', ' '.repeat(50)]) {
        expect(readTraces(`{"unknown":${text}}${padding}`)).toBe('invalid_json')
        expect(spanField(`"kind":${text}${padding}`)).toBe('invalid_json')
        expect(spanField(`"startTimeUnixNano":${text}${padding}`)).toBe('invalid_json')
        expect(anyValue(`{"doubleValue":${text}}${padding}`)).toBe('invalid_json')
      }
    },
  )

  it.each(['0', '-0', '0.0', '1E5', '1e+5', '-1.25e-400', '1e999999999999', '9'.repeat(40)])(
    'is taken with any JSON number in what is unknown: %s',
    text => expect(spanField(`"name":"a","unknown":[${text},{"a":${text}}]`)).toBe('a'),
  )
})

describe('keys', () => {
  it('come in any order, with white space anywhere', () => {
    const text = ` { "resourceSpans" : [ { "scopeSpans" :\t[ { "spans" :\r\n[ { "flags" : 257 , "name" : "a" } ] } ] } ] } `
    expect(readTraces(text)).toMatchObject({
      resourceSpans: [{ scopeSpans: [{ spans: [{ flags: 257, name: 'a' }] }] }],
    })
  })

  it('may hold escapes', () => expect(spanField('"name":null,"n\\u0061me":"a"')).toBe('a'))

  it('may be the original names, in snake_case', () => {
    expect(spanField('"droppedEventsCount":2,"dropped_events_count":1')).toBe(1)
    const span = '{"start_time_unix_nano":7,"status":{"code":2}}'
    expect(readTraces(`{"resource_spans":[{"schema_url":"s","scope_spans":[{"spans":[${span}]}]}]}`)).toMatchObject({
      resourceSpans: [{ schemaUrl: 's', scopeSpans: [{ spans: [{ startTimeUnixNano: 7n, status: { code: 2 } }] }] }],
    })
  })

  it.each(['', 'nam', 'names', 'Name', 'NAME', '__proto__', 'constructor', 'toString', '\u00ee', 'a\\nb'])(
    'that are unknown are skipped with their value: %s',
    key => {
      const anything = '{"a":[[],{},[{"b":null}],"\\u00e9\\n",-1.5e3,true,false]}'
      expect(spanField(`"name":"a","${key}":${anything},"kind":3`)).toBe('a')
    },
  )

  it('that are unknown may be long', () => expect(spanField(`"name":"a","${'n'.repeat(5_000)}":1`)).toBe('a'))

  it('that repeat: the last scalar counts, lists are joined, messages merged', () => {
    expect(spanField('"kind":1,"kind":2')).toBe(2)
    expect(spanField('"links":[{}],"links":[{},{}]')).toHaveLength(3)
    expect(spanField('"status":{"code":2},"status":{"message":"m"}')).toMatchObject({ code: 2, message: 'm' })
    expect(anyValueOf('{"stringValue":"a","intValue":1}')).toBe(1n)
    expect(anyValueOf('{"intValue":1,"stringValue":"a"}')).toBe('a')
  })
})

describe('null', () => {
  it.each(['name', 'traceId', 'kind', 'startTimeUnixNano', 'flags', 'attributes', 'events', 'status'])(
    'is an absent field: %s',
    name => expect(spanField(`"${name}":null`)).toEqual(spanField(`"${name}":null,"name":""`)),
  )

  it('takes nothing back', () => {
    expect(spanField('"kind":2,"kind":null')).toBe(2)
    expect(anyValueOf('{"intValue":1,"stringValue":null}')).toBe(1n)
  })

  it('in a list is an empty value among values, a rejected record among records, and else nothing', () => {
    expect(anyValueOf('{"arrayValue":{"values":[null,{}]}}')).toMatchObject({ values: [{}, {}] })
    expect(pointField('histogram', 'explicitBounds', '"explicitBounds":[1,null]')).toBe('invalid_json_value')
    expect(spanField('"attributes":[null,{"key":"a"},null]')).toMatchObject([{ key: 'a' }])
    expect(spanField('"events":[null]')).toEqual([])
    expect(readTraces('{"resourceSpans":[null]}')).toMatchObject({ resourceSpans: [] })
    expect(readTraces('{"resourceSpans":[{"scopeSpans":[{"spans":[null]}]}]}')).toMatchObject({
      resourceSpans: [{ scopeSpans: [{ spans: [{ $unknown: [{ no: 19_000 }] }] }] }],
    })
  })
})

describe('depth', () => {
  const nested = (depth: number, open: string, close: string, inner: string) =>
    open.repeat(depth) + inner + close.repeat(depth)

  const maps = (depth: number) =>
    nested(depth, '{"kvlistValue":{"values":[{"key":"k","value":', '}]}}', '{"intValue":1}')

  it('of values is 64 at most: those that are deeper are text', () => {
    const append = (depth: number) => {
      const span = `{"traceId":"${'1'.repeat(32)}","spanId":"${'1'.repeat(16)}","attributes":[{"key":"k","value":${maps(depth)}}]}`
      const body = Buffer.from(`{"resourceSpans":[{"scopeSpans":[{"spans":[${span}]}]}]}`)
      const result = transcoder.transcode('traces', body)
      const batch = createSpansBatch()
      if (!result.ok || !batch.append(ORIGIN, result.message).ok) throw new Error('refused')
      const [row] = readTables(batch).get('spans') ?? []
      return (row?.attributes as [[string, string]] | undefined)?.[0][1]
    }
    const kept = (inner: string) => nested(64, '{"k":', '}', inner)
    expect(append(64)).toBe(kept('1'))
    expect(append(65)).toBe(kept(JSON.stringify('{"values":[{"key":"k","value":{"intValue":1}}]}')))
    expect(append(2_000)).toContain('kvlistValue')
  })

  it('of 64 maps is taken where it is deepest, in an exemplar', () => {
    const exemplar = `{"filteredAttributes":[{"key":"k","value":${maps(64)}}]}`
    const metric = `{"histogram":{"dataPoints":[{"exemplars":[${exemplar}]}]}}`
    const text = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[${metric}]}]}]}`
    expect(transcoder.transcode('metrics', Buffer.from(text)).ok).toBe(true)
  })

  it.each([
    [
      'values',
      `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":${nested(4_000, '{"arrayValue":{"values":[', ']}}', '{}')}}]}]}]}`,
    ],
    ['unknown arrays', `{"a":${nested(10_001, '[', ']', '')}}`],
    ['unknown objects', `{"a":${nested(100_000, '{"a":', '}', '1')}}`],
    ['unclosed arrays', `{"a":${'['.repeat(1_000_000)}`],
  ])('without bound is refused: %s', (_, text) => {
    expect(transcoder.transcode('logs', Buffer.from(text))).toEqual({ ok: false, reason: 'nesting_too_deep' })
  })

  it('of 10,000 is the most of what is unknown', () => {
    expect(readTraces(`{"resourceSpans":[{}],"a":${nested(10_000, '[', ']', '')}}`)).toMatchObject({
      resourceSpans: [{}],
    })
  })
})

describe('size', () => {
  it('a message that takes more than 128 MiB as protobuf is refused', () => {
    const head = '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[{"explicitBounds":['
    const zeros = Buffer.alloc(40_000_000, '0,')
    const body = Buffer.concat([Buffer.from(head), zeros, Buffer.from('0]}]}}]}]}]}')])
    expect(transcoder.transcode('metrics', body)).toEqual({ ok: false, reason: 'rows_too_large' })
  })

  it('a large value costs much the same however deep it is: its bytes are moved a few times at most', () => {
    const value = `{"stringValue":"${'x'.repeat(16 * MIB)}"}`
    const open = '{"kvlistValue":{"values":[{"value":'
    const costOf = (depth: number) => {
      const body = `${open.repeat(depth)}${value}${'}]}}'.repeat(depth)}`
      const text = Buffer.from(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":${body}}]}]}]}`)
      const startedAt = process.threadCpuUsage()
      for (let i = 0; i < 8; i++) expect(transcoder.transcode('logs', text).ok).toBe(true)
      const { user, system } = process.threadCpuUsage(startedAt)
      return user + system
    }
    costOf(0)
    expect(costOf(60)).toBeLessThan(costOf(0) * 2.5)
  })
})
