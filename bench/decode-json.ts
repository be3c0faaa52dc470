import { fromBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { otlpJson } from '../test/support/otlp-json.ts'
import { createJsonTranscoder } from '../workers/otlp/json/transcode-json.ts'
import { createSpansBatch } from '../workers/otlp/spans.ts'
import { decodeTraceRowsOfJson } from './peers/json-rows.ts'
import type { Scenario } from './support/scenario.ts'
import { type Contender, takeTurns } from './support/take-turns.ts'
import { type TracePayloadOptions, tracePayload } from './trace-payload.ts'

const PROTOBUF = 'the same spans as protobuf'
const PARSE = 'JSON.parse, row objects, JSON.stringify'
/** Rows per insert of the spans pool: the blocks are closed and the buffers reset as often as there. */
const BATCH_ROWS = 100_000
const PAYLOADS = 20
const ORIGIN = { workspaceId: 'ws_bench', surfaceId: 'srf_bench', receivedAtMs: 1_790_000_000_000 }

const TYPICAL: TracePayloadOptions = { spans: 200, spansPerTrace: 20, exceptionEvery: 0 }

export const scenario: Scenario = {
  name: 'decode-json',
  question:
    'How many spans a second does one core turn from OTLP/JSON into blocks of ClickHouse rows, by way of protobuf bytes, ' +
    'against JSON.parse into objects and writing them as JSONEachRow?',
  async run(context) {
    const contenders: Contender[] = [
      {
        ...decodeBatch('transcoder and decoder, 200 spans', TYPICAL, 'json'),
        ratios: [{ to: PARSE, goal: { atLeast: 1.5 } }, { to: PROTOBUF }],
      },
      decodeBatch('… every tenth span with an exception', { ...TYPICAL, exceptionEvery: 10 }, 'json'),
      decodeBatch('… 20 spans', { ...TYPICAL, spans: 20 }, 'json'),
      decodeBatch('… 1 span', { ...TYPICAL, spans: 1 }, 'json'),
      transcodeAlone('transcoder alone, 200 spans', TYPICAL),
      decodeBatch(PROTOBUF, TYPICAL, 'protobuf'),
      writeRows(PARSE),
    ]
    const bytes = (jsonPayloads(TYPICAL)[0]?.length ?? 0) / TYPICAL.spans
    return {
      rows: takeTurns(contenders, 'spans/s', context),
      notes: [
        `Payloads of ${Math.round(bytes)} bytes a span as the JavaScript SDK writes them: ten resource attributes, eight of each span.`,
        'By CPU time of the thread. What the garbage collector does on other threads for JSON.parse is not counted.',
      ],
    }
  },
}

function jsonPayloads(options: TracePayloadOptions): Buffer[] {
  return protobufPayloads(options).map(body =>
    otlpJson(ExportTraceServiceRequestSchema, fromBinary(ExportTraceServiceRequestSchema, body)),
  )
}

function protobufPayloads(options: TracePayloadOptions): Buffer[] {
  return Array.from({ length: PAYLOADS }, () => tracePayload(options))
}

function decodeBatch(name: string, options: TracePayloadOptions, encoding: 'json' | 'protobuf'): Contender {
  const bodies = encoding === 'json' ? jsonPayloads(options) : protobufPayloads(options)
  const transcoder = createJsonTranscoder()
  const batch = createSpansBatch()
  return {
    name,
    take() {
      for (const body of bodies) {
        const message =
          encoding === 'json' ? transcoder.transcode('traces', body) : { ok: true as const, message: body }
        if (!message.ok) throw new Error(message.reason)
        const result = batch.append(ORIGIN as never, message.message)
        if (!result.ok || result.rows !== options.spans) throw new Error('a payload was not decoded')
        if (batch.rows < BATCH_ROWS) continue
        batch.tables()
        batch.reset()
      }
      return bodies.length * options.spans
    },
  }
}

function transcodeAlone(name: string, options: TracePayloadOptions): Contender {
  const bodies = jsonPayloads(options)
  const transcoder = createJsonTranscoder()
  return {
    name,
    take() {
      for (const body of bodies) {
        const result = transcoder.transcode('traces', body)
        if (!result.ok) throw new Error(result.reason)
      }
      return bodies.length * options.spans
    },
  }
}

function writeRows(name: string): Contender {
  const bodies = jsonPayloads(TYPICAL)
  return {
    name,
    take() {
      for (const body of bodies) {
        let lines = ''
        for (const row of decodeTraceRowsOfJson(body, ORIGIN)) lines += `${JSON.stringify(row)}\n`
        Buffer.from(lines)
      }
      return bodies.length * TYPICAL.spans
    },
  }
}
