import { describe, expect, it } from 'vitest'
import { anyValue, anyValueOf, logField, pointField, spanField } from '../../../test/support/oracles/read-otlp-json.ts'
import { createSpansBatch } from '../traces/spans.ts'
import { createJsonTranscoder } from './transcode-json.ts'

const TRACE_ID = '5b8efff798038103d269b633813fc60c'
const SPAN_ID = 'eee19b7ec3c1b174'
const INVALID = 'invalid_json_value'

describe('strings', () => {
  it.each([
    ['""', ''],
    ['"plain"', 'plain'],
    [String.raw`"\"\\\/\b\f\n\r\t"`, '"\\/\b\f\n\r\t'],
    [String.raw`"\u0041\u00e9\u65E5\ud83D\uDeb0"`, 'Aé日\u{1F6B0}'],
    ['"é日\u{1F6B0}\u007f"', 'é日\u{1F6B0}\u007f'],
    [String.raw`"\u0000"`, '\0'],
    [String.raw`"a\ud800"`, 'a\ufffd'],
    [String.raw`"\udc00b"`, '\ufffdb'],
    [String.raw`"\ud800\ud800\udc00"`, '\ufffd\u{10000}'],
    [String.raw`"\ud800\u0041"`, '\ufffdA'],
    [String.raw`"\ud800\n"`, '\ufffd\n'],
    [String.raw`"\udbff\udfff"`, '\u{10ffff}'],
  ])('%j', (text, value) => expect(spanField(`"name":${text}`)).toBe(value))

  it('of every length', () => {
    for (const length of [...Array(300).keys(), 16_383, 16_384, 100_000]) {
      const text = 'abcdefghij'.repeat(Math.ceil(length / 10)).slice(0, length)
      expect(spanField(`"name":"${text}"`)).toBe(text)
      expect(spanField(`"name":"${text}\\n"`)).toBe(`${text}\n`)
      expect(spanField(`"name":"\\u0061${text}"`)).toBe(`a${text}`)
      expect(anyValueOf(`{"stringValue":"${text}"}`)).toBe(text)
    }
  })

  it('of escapes alone, which are shorter than their notation', () => {
    for (const count of [50, 127, 128, 5_000]) {
      expect(spanField(`"name":"${'\\u0061'.repeat(count)}"`)).toBe('a'.repeat(count))
    }
  })

  it.each([
    String.raw`"\x41"`,
    String.raw`"\u12"`,
    String.raw`"\u12g4"`,
    String.raw`"\U0041"`,
    '"\\',
    '"a',
    '"a\nb"',
    '"a\tb"',
    '"\u0000"',
    '"\u001f"',
  ])('refused: %j', text => {
    expect(spanField(`"name":${text}`)).toBe('invalid_json')
    expect(spanField(`"unknown":${text}`)).toBe('invalid_json')
    expect(spanField(`${text}:1`)).toBe('invalid_json')
  })

  it('keep invalid UTF-8 as it is, as protobuf payloads do', () => {
    const body = Buffer.from('{"resourceSpans":[{"schemaUrl":"a\xff\xc3\x28"}]}', 'latin1')
    const result = createJsonTranscoder().transcode('traces', body)
    expect(result.ok && result.message.includes(Buffer.from('a\xff\xc3\x28', 'latin1'))).toBe(true)
  })

  it.each(['1', '-1.50', '1e400', 'true', 'false'])('have the text of a number or a bool: %s', text => {
    expect(spanField(`"name":${text}`)).toBe(text)
    expect(anyValueOf(`{"stringValue":${text}}`)).toBe(text)
  })

  it.each(['[]', '{}', '{"a":[1]}'])('are no arrays or objects: %s', text => {
    expect(spanField(`"name":${text}`)).toBe(INVALID)
  })
})

describe('ids', () => {
  it.each([
    TRACE_ID,
    TRACE_ID.toUpperCase(),
    '5B8efff798038103D269b633813fc60c',
    String.raw`\u0035b8efff798038103d269b633813fc60c`,
  ])('are hex in any case: %s', text => {
    expect(spanField(`"traceId":"${text}"`)).toEqual(bytesOf(TRACE_ID))
  })

  it('of other lengths stay as they are', () => {
    expect(spanField('"spanId":""')).toEqual(new Uint8Array())
    expect(spanField('"spanId":"abCD"')).toEqual(bytesOf('abcd'))
    expect(spanField(`"traceId":"${'12'.repeat(300)}"`)).toEqual(bytesOf('12'.repeat(300)))
  })

  it.each(['abc', 'xy', `${SPAN_ID.slice(1)}g`, 'W47/95gDgQPSabYzgT/GDA==', `${TRACE_ID}0`, '日本', ' '])(
    'that are no hex are one byte, which no rule for ids accepts: %s',
    text => {
      expect(spanField(`"traceId":"${text}"`)).toEqual(bytesOf('00'))
      expect(logField(`"spanId":"${text}"`)).toEqual(bytesOf('00'))
    },
  )

  it('that are wrong reject their span alone', () => {
    const span = (traceId: string, spanId: string, parent: string) =>
      `{"traceId":"${traceId}","spanId":"${spanId}","parentSpanId":"${parent}","name":"a"}`
    const spans = [
      span(TRACE_ID, SPAN_ID, ''),
      span(TRACE_ID.slice(1), SPAN_ID, ''),
      span(TRACE_ID, `${SPAN_ID.slice(1)}g`, ''),
      span(TRACE_ID, SPAN_ID, 'zz'),
      span(TRACE_ID, SPAN_ID, SPAN_ID),
    ]
    const body = Buffer.from(`{"resourceSpans":[{"scopeSpans":[{"spans":[${spans}]}]}]}`)
    const result = createJsonTranscoder().transcode('traces', body)
    const origin = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 }
    expect(result.ok && createSpansBatch().append(origin as never, result.message)).toEqual({
      ok: true,
      rows: 2,
      rejected: {
        invalid_trace_id: { count: 1, indexes: [1] },
        invalid_span_id: { count: 1, indexes: [2] },
        invalid_parent_span_id: { count: 1, indexes: [3] },
      },
    })
  })

  it.each(['1', 'true', '[]'])('are strings: %s', text => expect(spanField(`"traceId":${text}`)).toBe(INVALID))
})

describe('bytes', () => {
  it.each([
    ['', ''],
    ['AA==', '00'],
    ['AA', '00'],
    ['AAE=', '0001'],
    ['AAE', '0001'],
    ['+/+/', 'fbffbf'],
    ['-_-_', 'fbffbf'],
    [String.raw`+\/\u002b/`, 'fbffbf'],
  ])('are base64 in either alphabet, padded or not: %s', (text, hex) => {
    expect(anyValueOf(`{"bytesValue":"${text}"}`)).toEqual(bytesOf(hex))
  })

  it('of every length', () => {
    for (let length = 0; length < 300; length++) {
      const bytes = Buffer.alloc(length, 'abc')
      expect(anyValueOf(`{"bytesValue":"${bytes.toString('base64')}"}`)).toEqual(new Uint8Array(bytes))
    }
  })

  it.each(['A', 'AAAAA', '=', '==', 'A===', 'AA=', 'AAA==', 'AA==AA', 'AA=A', 'A A', 'AA!A', 'AAé'])(
    'that are no base64 are kept as text: %s',
    text => expect(anyValue(`{"bytesValue":"${text}"}`)).toEqual({ case: 'stringValue', value: text }),
  )
})

describe('integers', () => {
  it.each([
    ['0', 0n],
    ['-0', 0n],
    ['"-0"', 0n],
    ['7', 7n],
    ['"7"', 7n],
    ['-7', -7n],
    ['1e3', 1000n],
    ['1E+3', 1000n],
    ['"1e3"', 1000n],
    ['1.0', 1n],
    ['"1.0"', 1n],
    ['1.5e1', 15n],
    ['1500e-2', 15n],
    ['0.0015e4', 15n],
    ['0e999999999999', 0n],
    ['0.000e-5', 0n],
    ['9007199254740993', 9007199254740993n],
    ['"9223372036854775807"', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['9.223372036854775807e18', 9223372036854775807n],
    ['"\\u0031\\u0032"', 12n],
  ])('of 64 bits, as number or string, exactly: %s', (text, value) => {
    expect(anyValueOf(`{"intValue":${text}}`)).toBe(value)
    expect(pointField('gauge', 'value', `"asInt":${text}`)).toEqual({ case: 'asInt', value })
  })

  it('of every number of digits, before whatever may follow', () => {
    for (let digits = 1; digits <= 20; digits++) {
      const value = BigInt('12345678901234567890'.slice(0, digits))
      for (const text of [`${value}`, `"${value}"`, ` ${value} `, `${value}.0`, `${value}0e-1`]) {
        expect(spanField(`"startTimeUnixNano":${text}`)).toBe(value)
        expect(spanField(`"startTimeUnixNano":${text},"name":"${'x'.repeat(50)}"`)).toBe(value)
      }
    }
  })

  it.each(['9223372036854775808', '-9223372036854775809', '18446744073709551616', '1e19', '1e400', '-1e999999999999'])(
    'signed, out of range, are their text in an attribute, and no temporality or scale: %s',
    text => {
      expect(anyValueOf(`{"intValue":${text}}`)).toBe(text)
      expect(anyValueOf(`{"intValue":"${text}"}`)).toBe(text)
      expect(pointField('exponentialHistogram', 'scale', `"scale":${text}`)).toBe(INVALID)
    },
  )

  it.each([
    ['18446744073709551615', 18446744073709551615n],
    ['"18446744073709551615"', 18446744073709551615n],
    ['1.8446744073709551615e19', 18446744073709551615n],
    ['10000000000000000000', 10n ** 19n],
    ['1795177749267000000', 1795177749267000000n],
    ['-0', 0n],
    ['18446744073709551616', INVALID],
    ['99999999999999999999', INVALID],
    ['100000000000000000000', INVALID],
    ['1'.repeat(50), INVALID],
    ['-1', INVALID],
  ])('unsigned: %s', (text, value) => {
    expect(spanField(`"startTimeUnixNano":${text}`)).toBe(value)
    expect(spanField(`"startTimeUnixNano":${text},"name":"${'x'.repeat(50)}"`)).toBe(value)
  })

  it.each([
    ['droppedEventsCount', '4294967295', 4294967295],
    ['droppedEventsCount', '"4294967295"', 4294967295],
    ['droppedEventsCount', '4294967296', INVALID],
    ['droppedEventsCount', '-1', INVALID],
    ['flags', '4294967295', 4294967295],
    ['flags', '"257"', 257],
    ['flags', '4294967296', INVALID],
  ])('of 32 bits: %s %s', (name, text, value) => expect(spanField(`"${name}":${text}`)).toBe(value))

  it.each([
    ['2147483647', 2147483647],
    ['-2147483648', -2147483648],
    ['"-3"', -3],
    ['2147483648', INVALID],
    ['-2147483649', INVALID],
  ])('zigzag: %s', (text, value) => {
    expect(pointField('exponentialHistogram', 'scale', `"scale":${text}`)).toBe(value)
  })

  it.each(['1.5', '1e-1', '""', '" 1"', '"1 "', '"01"', '"+1"', '"1x"', '"0x10"', '"NaN"', 'true', '[1]', '{}'])(
    'that are none: %s',
    text => {
      for (const padding of ['', ' '.repeat(50)]) {
        const sent = text.startsWith('"') ? JSON.parse(text) : text
        expect(anyValueOf(`{"intValue":${text}${padding}}`)).toBe(sent)
        expect(spanField(`"flags":${text}${padding}`)).toBe(INVALID)
      }
    },
  )

  it.each([
    ['1795177749267000000.9', 1795177749267000000n],
    ['"1795177749267123.4567e3"', 1795177749267123456n],
    ['0.5', 0n],
    ['-0.5', 0n],
    ['-1', INVALID],
    ['"2026-11-20T12:00:00Z"', INVALID],
  ])('of nanoseconds have no fraction: %s', (text, value) => {
    expect(spanField(`"startTimeUnixNano":${text}`)).toBe(value)
    expect(logField(`"observedTimeUnixNano":${text}`)).toBe(value)
  })

  it.each([
    ['1e20', { case: 'asDouble', value: 1e20 }],
    ['1.5', { case: 'asDouble', value: 1.5 }],
    ['"NaN"', { case: 'asDouble', value: Number.NaN }],
    ['"x"', INVALID],
    ['1e400', INVALID],
  ])('of a point that do not fit are doubles: %s', (text, value) => {
    const members = `"asInt":${text}`
    expect(pointField('gauge', 'value', members)).toEqual(value)
  })
})

describe('doubles', () => {
  it.each([
    ['0', 0],
    ['-0', -0],
    ['-0.0', -0],
    ['"-0"', -0],
    ['1', 1],
    ['0.1', 0.1],
    ['-2.5', -2.5],
    ['1e3', 1000],
    ['"1e-3"', 0.001],
    ['0.30000000000000004', 0.30000000000000004],
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', 9007199254740992],
    ['123456789012345.6', 123456789012345.6],
    ['5e-324', 5e-324],
    ['1e-400', 0],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['"NaN"', Number.NaN],
    ['"Infinity"', Number.POSITIVE_INFINITY],
    ['"-Infinity"', Number.NEGATIVE_INFINITY],
    ['"\\u004eaN"', Number.NaN],
    [`0.${'3'.repeat(100)}`, 1 / 3],
  ])('as number or string: %s', (text, value) => {
    expect(anyValueOf(`{"doubleValue":${text}}`)).toBe(value)
    expect(anyValueOf(`{"doubleValue":${text},"x":"${'x'.repeat(50)}"}`)).toBe(value)
  })

  it('agree with JSON.parse on numbers of every form', () => {
    for (let i = 0; i < 10_000; i++) {
      // As text, a number below a millionth has an exponent.
      const digits = Math.random()
        .toFixed(20)
        .slice(2, 3 + (i % 18))
      const forms = [`${i % 100}.${digits}`, `${1 + (i % 1000)}${digits}`, `-${i % 10}.${digits}e${(i % 80) - 40}`]
      const text = forms[i % 3] as string
      expect(anyValueOf(`{"doubleValue":${text},"x":"${'x'.repeat(50)}"}`), text).toBe(JSON.parse(text))
    }
  })

  it.each(['nan', 'inf', '+Inf', '-inf', 'INFINITY'])('have other names: %s', name => {
    const value = Number(name.replace(/^(\+?|-)inf(inity)?$/i, '$1Infinity'))
    expect(anyValueOf(`{"doubleValue":"${name}"}`)).toBe(value)
    expect(pointField('histogram', 'explicitBounds', `"explicitBounds":[1,"${name}"]`)).toEqual([1, value])
  })

  it.each(['1e400', '"-1e309"', '""', '"infinite"', '" 1"', '"1."', '"0x1"', 'true', '{}'])(
    'that are none, or too large: %s',
    text => {
      expect(anyValueOf(`{"doubleValue":${text}}`)).toBe(text.startsWith('"') ? JSON.parse(text) : text)
      expect(pointField('gauge', 'value', `"asDouble":${text}`)).toBe(INVALID)
    },
  )
})

describe('enums', () => {
  it.each([
    ['2', 2],
    ['2.0', 2],
    ['99', 99],
    ['-1', -1],
    ['"SPAN_KIND_SERVER"', 2],
    [String.raw`"SPAN\u005fKIND_CLIENT"`, 3],
    ['"SPAN_KIND_FUTURE"', 0],
    ['"SERVER"', 2],
    ['"server"', 2],
    ['"2"', 2],
    ['"2.0"', 2],
    ['"2147483648"', 0],
    ['""', 0],
    [`"${'x'.repeat(100)}"`, 0],
    ['1.5', INVALID],
    ['2147483648', INVALID],
    ['true', INVALID],
  ])('by number or name; a name that is unknown is ignored: %s', (text, value) => {
    expect(spanField(`"kind":${text}`)).toBe(value)
  })

  it('of the other messages', () => {
    expect(spanField('"status":{"code":"STATUS_CODE_ERROR"}')).toMatchObject({ code: 2 })
    expect(spanField('"status":{"code":"ERROR"}')).toMatchObject({ code: 2 })
    expect(logField('"severityNumber":"SEVERITY_NUMBER_FATAL4"')).toBe(24)
    expect(logField('"severityNumber":"INFO2"')).toBe(10)
  })
})

describe('values of attributes', () => {
  it.each([
    ['{}', undefined],
    ['{"stringValue":""}', 'stringValue'],
    ['{"intValue":0}', 'intValue'],
    ['{"boolValue":false}', 'boolValue'],
    ['{"doubleValue":0}', 'doubleValue'],
    ['{"arrayValue":{}}', 'arrayValue'],
    ['{"kvlistValue":{"values":[]}}', 'kvlistValue'],
    ['{"bytesValue":""}', 'bytesValue'],
    ['{"stringValue":null}', undefined],
  ])('keep their kind: %s', (text, kind) => expect(anyValue(text)).toMatchObject({ case: kind }))

  it('booleans are true and false, also as strings or numbers', () => {
    for (const text of ['true', '"true"', '1', '"1"']) expect(anyValueOf(`{"boolValue":${text}}`)).toBe(true)
    for (const text of ['false', '"false"', '0']) expect(anyValueOf(`{"boolValue":${text}}`)).toBe(false)
    for (const text of ['[]', '2', 'null ,"stringValue":[]']) {
      expect(anyValueOf(`{"boolValue":${text}}`)).toBe(text.replace(/.*:/, ''))
    }
    expect(anyValueOf('{"boolValue":truth}')).toBe('invalid_json')
  })

  it.each(['a', '[]', '[1, {"a" : null}]', '-1.50', 'true', '1e400'])('of another form are their text: %s', value => {
    const text = value === 'a' ? '"a"' : value
    expect(anyValue(text)).toEqual({ case: 'stringValue', value })
    expect(anyValue(`{"kvlistValue":${text}}`)).toEqual({ case: 'stringValue', value })
    const list = logField(`"body":{"arrayValue":{"values":[${text}, null, {"intValue":1}]}}`)
    expect((list as { value: { value: unknown } }).value.value).toMatchObject({
      values: [{ value: { case: 'stringValue', value } }, { value: { case: undefined } }, { value: { value: 1n } }],
    })
  })

  it.each([
    '{"arrayValue":{"values":{}}}',
    '{"kvlistValue":{"values":[1]}}',
    '{"kvlistValue":{"values":[{"key":[]}]}}',
  ])('that are lists of another form are their text: %s', value =>
    expect(anyValue(value)).toEqual({ case: 'stringValue', value }),
  )
})

describe('repeated numbers', () => {
  const point = (name: string, text: string) => pointField('histogram', name, `"${name}":${text}`)

  it('are packed', () => {
    expect(point('bucketCounts', '[0,"1",18446744073709551615]')).toEqual([0n, 1n, 18446744073709551615n])
    expect(point('explicitBounds', '[0, -1.5 ,"Infinity",1e3]')).toEqual([0, -1.5, Number.POSITIVE_INFINITY, 1000])
    expect(point('explicitBounds', '[]')).toEqual([])
    expect(point('explicitBounds', `[${Array(5_000).fill(2)}]`)).toEqual(Array(5_000).fill(2))
    const buckets = '"positive":{"offset":-3,"bucketCounts":["300",0]}'
    expect(pointField('exponentialHistogram', 'positive', buckets)).toMatchObject({
      offset: -3,
      bucketCounts: [300n, 0n],
    })
  })

  it.each(['[true]', '[[1]]', '[1,null]', '{}', '"1"', '1'])('are numbers in an array: %s', text => {
    expect(point('explicitBounds', text)).toBe(INVALID)
    expect(point('bucketCounts', text)).toBe(INVALID)
  })
})

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}
