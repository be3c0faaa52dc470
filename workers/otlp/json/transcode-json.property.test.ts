import { type DescMessage, fromBinary, fromJson, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { rounds } from '../../../test/support/length.ts'
import { readTables } from '../../../test/support/oracles/read-tables.ts'
import { otlpJson } from '../../../test/support/payloads/otlp-json.ts'
import { randomMessage } from '../../../test/support/payloads/random-message.ts'
import { type Random, seededRandom } from '../../../test/support/payloads/scramble-message.ts'
import { createLogsBatch } from '../logs/logs.ts'
import { createMetricsBatch } from '../metrics/metrics.ts'
import { createSpansBatch } from '../traces/spans.ts'
import { createJsonTranscoder } from './transcode-json.ts'

const MESSAGES = rounds(20_000)
const ROW_MESSAGES = rounds(3_000)
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as never
const SIGNALS: readonly [signal: 'traces' | 'logs' | 'metrics', desc: DescMessage][] = [
  ['traces', ExportTraceServiceRequestSchema],
  ['logs', ExportLogsServiceRequestSchema],
  ['metrics', ExportMetricsServiceRequestSchema],
]

/** A random message and its text: as an SDK writes it, or in one of the many other ways that the mapping allows. */
function sample(desc: DescMessage, seed: number): { message: Message; text: Buffer } {
  const random = seededRandom(seed)
  const message = randomMessage(desc, random)
  return { message, text: otlpJson(desc, message, random() < 0.8 ? random : undefined) }
}

const ID = /^(trace|span|parent_?span)_?id$/i

/** A text that the library writes, and how it reads it. The ids of the text are in hex as in OTLP, and not in base64. */
function byLibrary(desc: DescMessage, message: Message, random: Random): { text: Buffer; bytes: Buffer } {
  const [useProtoFieldName, enumAsInteger, alwaysEmitImplicit] = [random() < 0.5, random() < 0.5, random() < 0.2]
  const json = JSON.stringify(toJson(desc, message, { useProtoFieldName, enumAsInteger, alwaysEmitImplicit }))
  const text = JSON.stringify(
    JSON.parse(json, (key, value) => (ID.test(key) ? Buffer.from(value, 'base64').toString('hex') : value)),
  )
  return { text: Buffer.from(text), bytes: Buffer.from(toBinary(desc, fromJson(desc, JSON.parse(json)))) }
}

describe('the JSON transcoder', () => {
  const transcoder = createJsonTranscoder()

  function transcode(signal: 'traces' | 'logs' | 'metrics', text: Buffer): Buffer {
    const result = transcoder.transcode(signal, text)
    if (!result.ok && result.reason === 'no_records') return Buffer.alloc(0)
    if (!result.ok) throw new Error(`${result.reason}: ${text.toString()}`)
    return result.message
  }

  it.each(SIGNALS)(
    `gives the message that was written, of %s (${MESSAGES} random messages)`,
    (signal, desc) => {
      fc.assert(
        fc.property(fc.integer(), seed => {
          const { message, text } = sample(desc, seed)
          // By their bytes: lone surrogates are lost on the way in protobuf as in JSON.
          const read = toBinary(desc, fromBinary(desc, transcode(signal, text)))
          if (!Buffer.from(toBinary(desc, message)).equals(read)) throw new Error(`read otherwise: ${text.toString()}`)
        }),
        { numRuns: MESSAGES },
      )
    },
    120_000,
  )

  it.each(SIGNALS)(`reads what @bufbuild/protobuf writes, of %s (${ROW_MESSAGES} random messages)`, (signal, desc) => {
    fc.assert(
      fc.property(fc.integer(), seed => {
        const random = seededRandom(seed)
        // Through protobuf, where lone surrogates are lost.
        const message = fromBinary(desc, toBinary(desc, randomMessage(desc, random)))
        const { text, bytes } = byLibrary(desc, message, random)
        if (!bytes.equals(toBinary(desc, fromBinary(desc, transcode(signal, text)))))
          throw new Error(`read otherwise: ${text.toString()}`)
      }),
      { numRuns: ROW_MESSAGES },
    )
  })

  it.each([
    ['traces', ExportTraceServiceRequestSchema, createSpansBatch] as const,
    ['logs', ExportLogsServiceRequestSchema, createLogsBatch] as const,
    ['metrics', ExportMetricsServiceRequestSchema, createMetricsBatch] as const,
  ])(
    `gives the rows that protobuf gives, of %s (${ROW_MESSAGES} random messages)`,
    (signal, desc, createBatch) => {
      const batch = createBatch()
      const rowsOf = (body: Buffer) => {
        batch.reset()
        const result = batch.append(ORIGIN, body)
        // Events and links are stored in the order in which they come, which differs.
        return { result, tables: readTables(batch) }
      }
      let rows = 0
      fc.assert(
        fc.property(fc.integer(), seed => {
          const { message, text } = sample(desc, seed)
          const expected = rowsOf(Buffer.from(toBinary(desc as DescMessage, message)))
          expect(rowsOf(transcode(signal, text))).toEqual(expected)
          rows += expected.result.ok ? expected.result.rows : 0
        }),
        { numRuns: ROW_MESSAGES },
      )
      expect(rows).toBeGreaterThan(ROW_MESSAGES)
    },
    60_000,
  )
})
