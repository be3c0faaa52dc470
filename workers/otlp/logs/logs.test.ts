import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { beforeEach, describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import type { AnyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import type { LogRecordSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/logs/v1/logs_pb.js'
import { MIB } from '../../../schemas/units.ts'
import { identify } from '../../../shared/grouping/fingerprint.ts'
import { readBlock, rowsOf } from '../../../test/support/oracles/read-block.ts'
import { wholeRow } from '../../../test/support/oracles/whole-row.ts'
import { withExceptions } from '../../../test/support/oracles/with-exceptions.ts'
import { createLogsBatch } from './logs.ts'

type RecordInit = Exclude<MessageInitShape<typeof LogRecordSchema>, { $typeName: string }>
type ValueInit = Exclude<MessageInitShape<typeof AnyValueSchema>, { $typeName: string }>

const RECEIVED_AT_MS = 1_790_000_000_123
const LATEST = BigInt(RECEIVED_AT_MS + 300_000) * 1_000_000n
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: RECEIVED_AT_MS } as never
const IDS = { traceId: new Uint8Array(16).fill(1), spanId: new Uint8Array(8).fill(2) }
const string = (value: string): ValueInit => ({ value: { case: 'stringValue', value } })
const text = (key: string, value: string) => ({ key, value: string(value) })
const int = (key: string, value: bigint) => ({ key, value: { value: { case: 'intValue' as const, value } } })

function payload(logRecords: RecordInit[], service = 'shop'): Buffer {
  const request = create(ExportLogsServiceRequestSchema, {
    resourceLogs: [{ resource: { attributes: [text('service.name', service)] }, scopeLogs: [{ logRecords }] }],
  })
  return Buffer.from(toBinary(ExportLogsServiceRequestSchema, request))
}

/** A field of several pieces, as protobuf allows; `tag` is that of an embedded message. */
function field(tag: number, content: Buffer): Buffer {
  const length = [0, 7, 14, 21].map((shift, i) => ((content.length >>> shift) & 0x7f) | (i < 3 ? 0x80 : 0))
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const wrapped = (record: Buffer) => field(0x0a, field(0x12, field(0x12, record)))

describe('a batch of logs', () => {
  const batch = withExceptions(createLogsBatch())
  beforeEach(() => batch.reset())

  it('separates findings that differ only in the message beside a blank stack or in the end of a text', () => {
    const exceptions: [type: string, message: string, stacktrace: string][] = [
      ['', 'out of paper', ' '],
      ['', 'out of ink', ' '],
      ['E', 'x', ''],
      ['E\0x', '', ''],
      ['E', '\0x', ''],
      ['E', '', 'x'],
      ['E', '', `Error: ${'x'.repeat(300)} paper`],
      ['E', '', `Error: ${'x'.repeat(300)} inked`],
    ]
    const record = ([type, message, stacktrace]: (typeof exceptions)[0]): RecordInit => ({
      ...IDS,
      attributes: [
        text('exception.type', type),
        text('exception.message', message),
        text('exception.stacktrace', stacktrace),
      ],
    })
    expect(batch.append(ORIGIN, payload(exceptions.map(record))).ok).toBe(true)
    const ids = rows('exceptions').map(row => Buffer.from(String(row.finding_id), 'hex').toString())
    const origin = { workspaceId: 'ws_1', surfaceId: 'srf_1', serviceName: 'shop' }
    expect(ids).toEqual(
      exceptions.map(([type, message, stacktrace]) => identify({ ...origin, type, message, stacktrace }).id),
    )
    expect(new Set(ids).size).toBe(exceptions.length)
  })

  function rows(table: string) {
    const found = batch.tables().find(block => block.table === table)
    return found ? rowsOf(readBlock(Buffer.concat(found.block))).map(wholeRow) : []
  }

  it('is empty without payloads, and after an empty one', () => {
    expect(batch.append(ORIGIN, Buffer.alloc(0))).toEqual({ ok: true, rows: 0, rejected: {} })
    expect([batch.rows, batch.tables()]).toEqual([0, []])
  })

  it.each<[string, RecordInit, string]>([
    ['a trace id of 8 bytes', { traceId: new Uint8Array(8).fill(1) }, 'invalid_trace_id'],
    ['a trace id of 17 zeros', { traceId: new Uint8Array(17) }, 'invalid_trace_id'],
    ['a span id of 16 bytes', { spanId: new Uint8Array(16).fill(1) }, 'invalid_span_id'],
    ['a span id of one byte', { spanId: new Uint8Array(1) }, 'invalid_span_id'],
  ])('leaves out only the record with %s', (_, invalid, reason) => {
    const full = { ...IDS, body: string('text'), attributes: [text('exception.type', 'E'), text('session.id', 's')] }
    const body = payload([
      { ...full, eventName: 'first' },
      { ...full, eventName: 'bad', ...invalid },
      { ...full, eventName: 'last' },
    ])
    expect(batch.append(ORIGIN, body)).toEqual({
      ok: true,
      rows: 2,
      rejected: { [reason]: { count: 1, indexes: [1] } },
    })
    const [first, last] = rows('logs')
    expect(last).toEqual({ ...first, event_name: 'last' })
    expect(rows('exceptions')).toHaveLength(2)
  })

  it.each<[string, RecordInit]>([
    ['without ids', {}],
    ['with ids of zeros', { traceId: new Uint8Array(16), spanId: new Uint8Array(8) }],
  ])('keeps a record %s without a trace', (_, ids) => {
    batch.append(ORIGIN, payload([{ ...ids, attributes: [text('exception.type', 'E')] }]))
    const none = { trace_id: '0'.repeat(32), span_id: '0'.repeat(16) }
    expect([rows('logs')[0], rows('exceptions')[0]]).toMatchObject([none, none])
  })

  it('keeps a trace id without a span id', () => {
    batch.append(ORIGIN, payload([{ traceId: IDS.traceId, attributes: [text('exception.type', 'E')] }]))
    const ids = { trace_id: '01'.repeat(16), span_id: '0'.repeat(16) }
    expect([rows('logs')[0], rows('exceptions')[0]]).toMatchObject([ids, ids])
  })

  it.each<[string, RecordInit, bigint]>([
    ['its time', { timeUnixNano: 5n, observedTimeUnixNano: 9n }, 5n],
    ['the time it was observed, where it has none', { observedTimeUnixNano: 9n }, 9n],
    ['the arrival of its payload, where it has neither', {}, BigInt(RECEIVED_AT_MS) * 1_000_000n],
    ['its time, up to five minutes after its arrival', { timeUnixNano: LATEST }, LATEST],
    ...[LATEST + 1n, LATEST + 2n ** 32n, 10_413_792_000_000_000_000n, 2n ** 64n - 1n].map(
      (timeUnixNano): [string, RecordInit, bigint] => [
        `its arrival, where its clock is ahead: ${timeUnixNano}`,
        { timeUnixNano, observedTimeUnixNano: 9n },
        BigInt(RECEIVED_AT_MS) * 1_000_000n,
      ],
    ),
    [
      'its arrival, where the clock of its observer is ahead',
      { observedTimeUnixNano: 2n ** 63n },
      BigInt(RECEIVED_AT_MS) * 1_000_000n,
    ],
  ])('dates a record by %s', (_, times, timestamp) => {
    batch.append(ORIGIN, payload([times]))
    expect(rows('logs')).toMatchObject([
      {
        timestamp,
        time_unix_nano: times.timeUnixNano ?? 0n,
        observed_time_unix_nano: times.observedTimeUnixNano ?? 0n,
      },
    ])
  })

  it.each([
    [0, 0],
    [9, 9],
    [25, 25],
    [255, 255],
    [256, 0],
    [-1, 0],
  ])('keeps the severity number %i as %i', (sent, kept) => {
    batch.append(ORIGIN, payload([{ severityNumber: sent, severityText: 'Notice' }]))
    expect(rows('logs')).toMatchObject([{ severity_number: kept, severity_text: 'Notice' }])
  })

  it.each<[string, ValueInit | undefined, number, string]>([
    ['nothing', undefined, 0, ''],
    ['an empty value', {}, 0, ''],
    ['a string', string('it "works"'), 1, 'it "works"'],
    ['an empty string', string(''), 1, ''],
    ['a long string', string('x'.repeat(300)), 1, 'x'.repeat(300)],
    ['a bool', { value: { case: 'boolValue', value: true } }, 2, 'true'],
    ['an int', { value: { case: 'intValue', value: -(2n ** 63n) } }, 3, '-9223372036854775808'],
    ['a double', { value: { case: 'doubleValue', value: 1e21 } }, 4, '1e+21'],
    ['an array', { value: { case: 'arrayValue', value: { values: [string('a'), {}] } } }, 5, '["a",null]'],
    [
      'a map',
      { value: { case: 'kvlistValue', value: { values: [text('msg', 'hi'), int('n', 1n)] } } },
      6,
      '{"msg":"hi","n":1}',
    ],
    ['bytes', { value: { case: 'bytesValue', value: new Uint8Array([255, 0]) } }, 7, '/wA='],
  ])('keeps %s as a body', (_, body, type, stored) => {
    batch.append(ORIGIN, payload([{ ...(body && { body }) }]))
    expect(rows('logs')).toMatchObject([{ body: stored, body_type: type }])
  })

  it('merges a body in pieces and uses its last member', () => {
    const member = (value: ValueInit) => {
      const record = toBinary(
        ExportLogsServiceRequestSchema,
        create(ExportLogsServiceRequestSchema, {
          resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: value }] }] }],
        }),
      )
      return Buffer.from(record.subarray(6)) // past the headers of four messages, each of two bytes, but its own
    }
    const list = (value: string): ValueInit => ({ value: { case: 'arrayValue', value: { values: [string(value)] } } })
    batch.append(ORIGIN, wrapped(Buffer.concat([member(list('a')), member(list('b'))])))
    batch.append(ORIGIN, wrapped(Buffer.concat([member(string('a')), member(string('b'))])))
    batch.append(ORIGIN, wrapped(Buffer.concat([member(string('a')), member({})])))
    expect(rows('logs').map(row => row.body)).toEqual(['["a","b"]', 'b', 'a'])
  })

  it('is unchanged by a refused payload', () => {
    const full = { body: string('kept'), attributes: [text('exception.type', 'E')] }
    batch.append(ORIGIN, payload([full]))
    const before = [batch.bytes, rows('logs'), rows('exceptions')]
    const other = payload([full, { body: string('cut') }], 'other service')
    expect(batch.append(ORIGIN, other.subarray(0, other.length - 1))).toEqual({ ok: false, reason: 'truncated' })
    expect([batch.bytes, rows('logs'), rows('exceptions')]).toEqual(before)
    batch.append(ORIGIN, payload([{ body: string('next') }], 'third service'))
    expect(rows('logs').map(row => [row.body, row.service_name])).toEqual([
      ['kept', 'shop'],
      ['next', 'third service'],
    ])
  })

  it('keeps a body that is nested too deep', () => {
    let deep: Buffer = Buffer.alloc(0)
    for (let i = 0; i < 70; i++) deep = field(0x2a, field(0x0a, deep))
    expect(batch.append(ORIGIN, wrapped(field(0x2a, deep)))).toMatchObject({ ok: true, rows: 1 })
  })

  it('refuses a payload with too many records before it allocates memory for them', () => {
    const empty = (count: number) => field(0x0a, field(0x12, Buffer.alloc(count * 2, Buffer.from([0x12, 0]))))
    const many = empty(5_000_000)
    const before = process.memoryUsage().rss
    expect(batch.append(ORIGIN, many)).toEqual({ ok: false, reason: 'rows_too_large' })
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MIB)
    expect(batch.append(ORIGIN, empty(100_000))).toEqual({ ok: true, rows: 100_000, rejected: {} })
  })

  it('promotes the last session.id if it is text', () => {
    for (const attributes of [
      [text('session.id', 's1'), text('session.id', 's2')],
      [int('session.id', 42n)],
      [text('session.id', 's1'), { key: 'session.id', value: {} }],
    ]) {
      batch.append(ORIGIN, payload([{ attributes }]))
    }
    expect(rows('logs').map(row => row.session_id)).toEqual(['s2', '42', ''])
  })

  it('derives an occurrence from a record that describes an exception', () => {
    const times = { timeUnixNano: 5n, observedTimeUnixNano: 9n }
    batch.append(
      ORIGIN,
      payload([
        {
          ...times,
          ...IDS,
          body: string('failed'),
          attributes: [
            text('exception.type', 'E'),
            text('exception.message', 'm'),
            text('exception.stacktrace', 'at f (a.js:1:2)'),
            text('session.id', 's1'),
          ],
        },
        { ...times, attributes: [text('exception.message', 'only a message')] },
        { observedTimeUnixNano: 9n, attributes: [text('exception.stacktrace', 'at g (b.js:1:2)')] },
        { body: string('an exception in words alone') },
        { attributes: [text('exception.type', ''), text('exception.escaped', 'true'), text('exception.cause', 'x')] },
      ]),
    )
    expect(rows('logs')).toHaveLength(5)
    expect(rows('exceptions')).toMatchObject([
      {
        source: 2,
        type: 'E',
        message: 'm',
        stacktrace: 'at f (a.js:1:2)',
        session_id: 's1',
        service_name: 'shop',
        span_name: '',
        trace_id: '01'.repeat(16),
        span_id: '02'.repeat(8),
        occurred_at_unix_nano: 5n,
      },
      { source: 2, type: '', message: 'only a message', occurred_at_unix_nano: 5n },
      { source: 2, stacktrace: 'at g (b.js:1:2)', occurred_at_unix_nano: 9n },
    ])
    expect(new Set(rows('exceptions').map(row => row.finding_id)).size).toBe(3)
  })

  it('stores a record without its session when the id has over 1,024 characters, and counts it', () => {
    const attributes = [text('session.id', 'a'.repeat(1_025)), text('exception.type', 'E')]
    expect(batch.append(ORIGIN, payload([{ attributes }]))).toEqual({
      ok: true,
      rows: 1,
      rejected: { session_id_too_long: { count: 1, indexes: [] } },
    })
    expect(rows('logs')[0]).toMatchObject({ session_id: '' })
    expect(rows('exceptions')[0]).toMatchObject({ session_id: '' })
  })

  it('derives at most 10,000 occurrences from a payload, counts the rest, and keeps every record', () => {
    const storm = Array.from({ length: 12_000 }, (_, i) => ({ attributes: [text('exception.message', `m${i % 50}`)] }))
    expect(batch.append(ORIGIN, payload(storm))).toEqual({
      ok: true,
      rows: 12_000,
      rejected: { exceptions_over_limit: { count: 2_000, indexes: [] } },
    })
    expect(rows('exceptions')).toHaveLength(10_000)
  })
})
