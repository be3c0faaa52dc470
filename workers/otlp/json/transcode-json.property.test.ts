import { type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { otlpJson } from '../../../test/support/otlp-json.ts'
import { randomMessage } from '../../../test/support/random-message.ts'
import { seededRandom } from '../../../test/support/scramble-message.ts'
import { createSpansBatch } from '../spans.ts'
import { createJsonTranscoder } from './transcode-json.ts'

const MESSAGES = 7_000
const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_123 } as never
const SIGNALS: readonly [signal: 'traces' | 'logs' | 'metrics', desc: DescMessage][] = [
  ['traces', ExportTraceServiceRequestSchema],
  ['logs', ExportLogsServiceRequestSchema],
  ['metrics', ExportMetricsServiceRequestSchema],
]

/** A random message with its text as an SDK writes it, and in one of the many other ways that the mapping allows. */
function sample(desc: DescMessage, seed: number) {
  const random = seededRandom(seed)
  const message: Message = randomMessage(desc, random)
  return { message, texts: [otlpJson(desc, message), otlpJson(desc, message, random)] }
}

describe('the JSON transcoder', () => {
  const transcoder = createJsonTranscoder()

  function transcode(signal: 'traces' | 'logs' | 'metrics', text: Buffer): Buffer {
    const result = transcoder.transcode(signal, text)
    if (!result.ok) throw new Error(`${result.reason}: ${text.toString()}`)
    return result.message
  }

  it.each(SIGNALS)(
    `gives the message that was written, of %s (${MESSAGES} random messages in two texts)`,
    (signal, desc) => {
      fc.assert(
        fc.property(fc.integer(), seed => {
          const { message, texts } = sample(desc, seed)
          // By their bytes: lone surrogates are lost on the way in protobuf as in JSON.
          const expected = Buffer.from(toBinary(desc, message))
          for (const text of texts) {
            const read = toBinary(desc, fromBinary(desc, transcode(signal, text)))
            if (!expected.equals(read)) throw new Error(`read otherwise: ${text.toString()}`)
          }
        }),
        { numRuns: MESSAGES },
      )
    },
    120_000,
  )

  it('gives the same rows of spans as protobuf (2,000 random messages)', () => {
    const batch = createSpansBatch()
    const rowsOf = (body: Buffer) => {
      batch.reset()
      const result = batch.append(ORIGIN, body)
      return {
        result,
        tables: batch.tables().map(({ table, rows, block }) => ({ table, rows, block: Buffer.concat(block) })),
      }
    }
    let rows = 0
    fc.assert(
      fc.property(fc.integer(), seed => {
        const { message, texts } = sample(ExportTraceServiceRequestSchema, seed)
        const expected = rowsOf(Buffer.from(toBinary(ExportTraceServiceRequestSchema, message as never)))
        for (const text of texts) expect(rowsOf(transcode('traces', text))).toEqual(expected)
        rows += expected.result.ok ? expected.result.rows : 0
      }),
      { numRuns: 2_000 },
    )
    expect(rows).toBeGreaterThan(2_000)
  }, 60_000)
})
