import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { PayloadFrame } from '../../../shared/queue/payload-frame.ts'
import { rounds } from '../../../test/support/length.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { otlpJson } from '../../../test/support/payloads/otlp-json.ts'
import { randomMessage } from '../../../test/support/payloads/random-message.ts'
import { seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import type { AppendResult, RowBatch } from '../../sink/row-batch.ts'
import { createMetricsBatch } from '../metrics/metrics.ts'
import { createSpansBatch } from '../traces/spans.ts'
import { acceptJson, createJsonTranscoder } from './transcode-json.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as PayloadFrame
const VALUES = rounds(3_000)
const transcoder = createJsonTranscoder()

const ids = '"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"'

function append(batch: RowBatch, text: string): AppendResult {
  const frame = { ...ORIGIN, contentType: 'application/json' } as const
  return acceptJson('traces', batch, transcoder).append(frame, Buffer.from(text))
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

it(`costs its record at most, whatever it is (${VALUES} random values in random places of random requests)`, () => {
  let kept = 0
  fc.assert(
    fc.property(fc.integer(), fc.jsonValue(), fc.nat(), (seed, value, choice) => {
      const desc = ExportTraceServiceRequestSchema
      const request = JSON.parse(otlpJson(desc, randomMessage(desc, seededRandom(seed))).toString()) as Json
      const lists = valuesOf(request, 'resourceSpans').flatMap(item => valuesOf(item, 'scopeSpans'))
      const spans = lists.flatMap(scope => valuesOf(scope, 'spans').map((span, at) => ({ scope, span, at })))
      const places = spans.flatMap(place => placesIn(place.span).map(inner => ({ ...place, ...inner })))
      const place = places[choice % places.length]
      if (place === undefined) return
      const rowsOf = () => {
        const batch = createSpansBatch()
        const result = append(batch, JSON.stringify(request))
        return { result, rows: readTables(batch).get('spans') ?? [] }
      }
      place.holder[place.key] = value
      const { result, rows } = rowsOf()
      ;(place.scope as { spans: unknown[] }).spans.splice(place.at, 1)
      const others = rowsOf().rows
      if (!result.ok) throw new Error(`refused: ${result.reason}`)
      const at = others.findIndex((other, i) => !isDeepStrictEqual(other, rows[i]))
      const extra = rows.length - others.length
      if (at >= 0) rows.splice(at, extra)
      else rows.length -= extra
      expect([0, 1]).toContain(extra)
      expect(rows).toEqual(others)
      kept += extra
    }),
    { numRuns: VALUES },
  )
  expect(kept).toBeGreaterThan(VALUES / 20)
})

function valuesOf(message: unknown, name: string): Json[] {
  return ((message as Json)[name] as Json[] | undefined) ?? []
}

/** Every member and element in a JSON value, each with the object or array that holds it. */
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
