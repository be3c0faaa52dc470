import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { DescMessage } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { Signal } from '../../../schemas/queues/names.ts'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { rounds } from '../../../test/support/length.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { otlpJson } from '../../../test/support/payloads/otlp-json.ts'
import { randomMessage } from '../../../test/support/payloads/random-message.ts'
import { seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import type { AppendResult, RowBatch } from '../../sink/row-batch.ts'
import { createLogsBatch } from '../logs/logs.ts'
import { createMetricsBatch } from '../metrics/metrics.ts'
import { createSpansBatch } from '../traces/spans.ts'
import { acceptJson, createJsonTranscoder } from './transcode-json.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as PayloadFrame
const VALUES = rounds(2_000)
const transcoder = createJsonTranscoder()

const ids = '"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"'

function append(batch: RowBatch, text: string, signal: Signal = 'traces'): AppendResult {
  const frame = { ...ORIGIN, contentType: 'application/json' } as const
  return acceptJson(signal, batch, transcoder).append(frame, Buffer.from(text))
}

describe('a value that does not fit', () => {
  const resource = (attribute: string, spans: readonly string[]) =>
    `{"resource":{"attributes":[${attribute}]},"scopeSpans":[{"spans":[${spans}]}]}`

  it.each([
    '"name":{}',
    '"startTimeUnixNano":-5',
    '"endTimeUnixNano":"2026-11-20T12:00:00Z"',
    '"droppedAttributesCount":-1',
    '"kind":true',
    '"traceId":5',
    '"attributes":{"a":1}',
    '"attributes":[1]',
    '"events":[{"name":"a","timeUnixNano":"x"}]',
    '"links":"a"',
    '"status":2',
  ])('rejects its record alone, with its position: %s', member => {
    const span = (name: string) => `{${ids},"name":"${name}"}`
    const text = `{"resourceSpans":[${resource('', [span('a'), `{${ids},${member}}`])},${resource('', ['7', span('b'), 'null', span('c')])}]}`
    const batch = createSpansBatch()
    expect(append(batch, text)).toEqual({
      ok: true,
      rows: 3,
      rejected: { invalid_json_value: { count: 3, indexes: [1, 2, 4] } },
    })
    expect(readTables(batch).get('spans')).toMatchObject([{ name: 'a' }, { name: 'b' }, { name: 'c' }])
  })

  it('of an attribute rejects nothing', () => {
    const values = [
      '{"intValue":1e20}',
      '{"arrayValue":{"values":[null]}}',
      '{"boolValue":[1]}',
      '7',
      '{"doubleValue":1e400}',
    ]
    const attributes = values.map((value, i) => `{"key":"k${i}","value":${value}}`)
    const batch = createSpansBatch()
    const text = `{"resourceSpans":[${resource('{"key":"service.name","value":"shop"}', [`{${ids},"attributes":[${attributes}]}`])}]}`
    expect(append(batch, text)).toEqual({ ok: true, rows: 1, rejected: {} })
    expect(readTables(batch).get('spans')).toMatchObject([
      {
        service_name: 'shop',
        attributes: [
          ['k0', '1e20'],
          ['k1', '[null]'],
          ['k2', '[1]'],
          ['k3', '7'],
          ['k4', '1e400'],
        ],
      },
    ])
  })

  it('outside of records is left out and counted', () => {
    const batch = createSpansBatch()
    const text = `{"resourceSpans":[{"schemaUrl":[],"resource":7,"scopeSpans":["x",{"spans":[{${ids}}]}]}]}`
    expect(append(batch, text)).toEqual({
      ok: true,
      rows: 1,
      rejected: { json_value_left_out: { count: 3, indexes: [] } },
    })
    expect(append(batch, '{"resourceSpans":[{"resource":7}]}')).toEqual({ ok: false, reason: 'invalid_json_value' })
    expect(append(batch, '{"resourceSpans":[{"resource":{}}]}')).toEqual({ ok: false, reason: 'no_records' })
  })

  it('cannot be sent by protobuf: a record that has the reserved field is read', () => {
    const record = Buffer.from([0x0a, 8, 0x12, 6, 0x12, 4, 0xc0, 0xa3, 0x09, 1])
    expect(createSpansBatch().append({ ...ORIGIN, contentType: 'application/x-protobuf' }, record)).toMatchObject({
      rejected: { invalid_trace_id: { count: 1 } },
    })
  })
})

type Json = Record<string, unknown>

it.each([
  ['traces', ExportTraceServiceRequestSchema, createSpansBatch, 'spans'] as const,
  ['logs', ExportLogsServiceRequestSchema, createLogsBatch, 'logs'] as const,
  ['metrics', ExportMetricsServiceRequestSchema, createMetricsBatch, 'metric_points'] as const,
])(
  `a value costs its record at most, whatever it is (%s, ${VALUES} random values)`,
  (signal, desc, createBatch, table) => {
    const batch = createBatch()
    const rowsOf = (request: Json) => {
      batch.reset()
      const result = append(batch, JSON.stringify(request), signal)
      return { result, rows: readTables(batch).get(table) ?? [] }
    }
    let kept = 0
    fc.assert(
      fc.property(fc.integer(), fc.jsonValue(), fc.nat(), (seed, value, choice) => {
        const random = seededRandom(seed)
        const request = JSON.parse(otlpJson(desc as DescMessage, randomMessage(desc, random)).toString()) as Json
        const places = recordsIn(request).flatMap(record =>
          placesIn(record.list[record.at]).map(place => ({ ...record, ...place })),
        )
        const place = places[choice % places.length]
        if (place === undefined) return
        place.holder[place.key] = value
        const { result, rows } = rowsOf(request)
        place.list.splice(place.at, 1)
        const others = rowsOf(request).rows
        if (!result.ok) throw new Error(`refused: ${result.reason}`)
        const extra = rows.length - others.length
        expect([0, 1]).toContain(extra)
        const at = others.findIndex((other, i) => !isDeepStrictEqual(other, rows[i]))
        rows.splice(at < 0 ? others.length : at, extra)
        expect(rows).toEqual(others)
        kept += extra
      }),
      { numRuns: VALUES },
    )
    expect(kept).toBeGreaterThan(VALUES / 50)
  },
)

/** The lists of records in a request, with each position. */
function recordsIn(message: unknown): { list: unknown[]; at: number }[] {
  if (typeof message !== 'object' || message === null) return []
  return Object.entries(message).flatMap(([name, value]) =>
    ['spans', 'logRecords', 'dataPoints'].includes(name)
      ? (value as unknown[]).map((_, at) => ({ list: value as unknown[], at }))
      : recordsIn(value),
  )
}

/** Every member and element in a JSON value, each with the object or array that contains it. */
function placesIn(value: unknown): { holder: Json; key: string }[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.keys(value).flatMap(key => [{ holder: value as Json, key }, ...placesIn((value as Json)[key])])
}

/** The rows of the table of leniencies: an example, and the same in the words of the specification. */
const LENIENCIES = readFileSync('docs/api/otlp.md', 'utf8')
  .split('\n')
  .flatMap(line => {
    const [, example, result] = /^\| [^|]+\| `(.+)` *\| (.+?) *\|$/.exec(line) ?? []
    return example === undefined ? [] : [[example, result?.replaceAll('`', '') as string] as const]
  })

describe('a leniency of docs/api/otlp.md', () => {
  it('is in the table', () => expect(LENIENCIES.length).toBeGreaterThan(10))

  it.each(LENIENCIES)('reads %s as %s', (example, result) => {
    const read = (text: string) => {
      const members = /^"\w+":/.test(text) ? text : `"attributes":[{"key":"a","value":${text}}]`
      const isPoint = members.includes('"as')
      const signal = isPoint ? 'metrics' : 'traces'
      const rows = acceptJson(signal, isPoint ? createMetricsBatch() : createSpansBatch(), transcoder)
      const point = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[{${members}}]}}]}]}]}`
      const span = `{"resourceSpans":[{"scopeSpans":[{"spans":[{${ids},${members}}]}]}]}`
      const appended = rows.append({ ...ORIGIN, contentType: 'application/json' }, Buffer.from(isPoint ? point : span))
      return { appended, tables: readTables(rows) }
    }
    if (result === 'rejected') {
      expect(read(example).appended).toMatchObject({ rows: 0, rejected: { invalid_json_value: { count: 1 } } })
    } else expect(read(example)).toEqual(read(result))
  })
})
