import { type DescMessage, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { ExportLogsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/logs/v1/logs_service_pb.js'
import { ExportMetricsServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.js'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { DEFAULT_SCRUBBER, Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { exampleFrame } from '../../test/support/payloads/example-frame.ts'
import { createSessionsBatch } from '../json-rows.ts'
import { acceptJson, createJsonTranscoder } from '../otlp/json/transcode-json.ts'
import { createLogsBatch } from '../otlp/logs/logs.ts'
import { createMetricsBatch } from '../otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../otlp/traces/spans.ts'
import type { RowBatch } from '../sink/row-batch.ts'

const FRAME = exampleFrame('', { workspaceId: 'ws_1' })
const SECRET = { key: 'http.request.header.authorization', value: { stringValue: 'Bearer x' } }
const SPAN = { traceId: 'AQEBAQEBAQEBAQEBAQEBAQ==', spanId: 'AQEBAQEBAQE=', name: 'x' }
/** The identifiers of a trace must not be zero. */
const INVALID_SPAN = { ...SPAN, traceId: 'AAAAAAAAAAAAAAAAAAAAAA==' }
const RESOURCE = { attributes: [SECRET, { key: 'host.name', value: { stringValue: 'h' } }] }

const encode = (desc: DescMessage, json: unknown) => Buffer.from(toBinary(desc, fromJson(desc, json as JsonValue)))
const spansBody = (spans: readonly object[], resource: object = {}) =>
  encode(ExportTraceServiceRequestSchema, { resourceSpans: [{ resource, scopeSpans: [{ spans }] }] })

function scrubbing(rows: OtlpBatch, scrubber = DEFAULT_SCRUBBER): OtlpBatch {
  rows.scrubberOf = () => scrubber
  return rows
}

/** Appends a request and returns how many values each rule has replaced. */
function counted(rows: RowBatch, body: Buffer, frame = FRAME): Record<string, number> | undefined {
  const result = rows.append(frame, body)
  return result.ok && result.scrubbed ? Object.fromEntries(result.scrubbed) : undefined
}

describe('the values of a request that are replaced', () => {
  it('are counted by rule, those of attributes, events and links', () => {
    const rules = [
      { name: 'headers', keys: ['authorization'], action: 'mask' as const },
      { name: 'people', keys: ['email'], action: 'remove' as const },
      { name: 'kept', keys: ['token'], action: 'keep' as const },
    ]
    const rows = scrubbing(createSpansBatch(), new Scrubber({ revision: 1, rules }))
    const others = ['email', 'user.email', 'token', 'http.route'].map(key => ({ ...SECRET, key }))
    const part = { attributes: [SECRET] }
    const span = { ...SPAN, attributes: [SECRET, ...others], events: [part], links: [part] }
    expect(counted(rows, spansBody([span]))).toEqual({ headers: 3, people: 2 })
    expect(counted(rows, spansBody([SPAN]))).toBeUndefined()
  })

  it('count each time that a resource, a scope or a metric is sent, although it is converted once in a batch', () => {
    const spans = scrubbing(createSpansBatch())
    for (let i = 0; i < 3; i++) expect(counted(spans, spansBody([SPAN], RESOURCE))).toEqual({ credentials: 1 })
    const scope = { name: 's', attributes: [SECRET] }
    const metric = { name: 'm', metadata: [SECRET, SECRET], gauge: { dataPoints: [{ asInt: '1' }] } }
    const part = { resource: RESOURCE, scopeMetrics: [{ scope, metrics: [metric] }] }
    const metrics = scrubbing(createMetricsBatch())
    const body = encode(ExportMetricsServiceRequestSchema, { resourceMetrics: [part, part] })
    for (let i = 0; i < 3; i++) expect(counted(metrics, body)).toEqual({ credentials: 8 })
  })

  it('count once where they are read twice: attributes of an exception, and maps in a place', () => {
    const thrown = [{ key: 'exception.type', value: { stringValue: 'E' } }, SECRET]
    const brands = { arrayValue: { values: [{ kvlistValue: { values: [SECRET] } }] } }
    const part = {
      resource: { attributes: [{ key: 'browser.brands', value: brands }] },
      scopeLogs: [{ logRecords: [{ attributes: thrown }] }],
    }
    const logs = scrubbing(createLogsBatch())
    for (let i = 0; i < 2; i++) {
      const body = encode(ExportLogsServiceRequestSchema, { resourceLogs: [part] })
      expect(counted(logs, body)).toEqual({ credentials: 2 })
    }
  })

  it('do not count in a record that is left out, nor in a request of which nothing is stored', () => {
    const rows = scrubbing(createSpansBatch())
    const attributes = [SECRET, SECRET]
    const [valid, invalid] = [SPAN, INVALID_SPAN].map(span => ({ ...span, attributes }))
    expect(
      counted(
        rows,
        spansBody(
          [invalid, valid, invalid].map(span => span ?? {}),
          RESOURCE,
        ),
      ),
    ).toEqual({
      credentials: 3,
    })
    expect(counted(rows, spansBody([invalid ?? {}], RESOURCE))).toBeUndefined()
    // A replay stores only the records that were left out.
    const replayed = { ...FRAME, only: new Set([1]) }
    expect(counted(rows, spansBody([valid ?? {}, { ...SPAN, attributes: [SECRET] }]), replayed)).toEqual({
      credentials: 1,
    })
  })

  it('leave nothing to the next request if their own is refused', () => {
    const rows = scrubbing(createSpansBatch())
    const body = spansBody([{ ...SPAN, attributes: [SECRET] }], RESOURCE)
    expect(rows.append(FRAME, Buffer.concat([body, body.subarray(0, -1)]))).toMatchObject({ ok: false })
    expect(counted(rows, spansBody([SPAN]))).toBeUndefined()
    expect(counted(rows, body)).toEqual({ credentials: 2 })
  })

  it('are counted in JSON too', () => {
    const spans = scrubbing(createSpansBatch())
    const rows = acceptJson('traces', spans, createJsonTranscoder())
    const span = { traceId: '01'.repeat(16), spanId: '01'.repeat(8), attributes: [SECRET, { key: 'a', value: 1 }] }
    const body = Buffer.from(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] }))
    expect(counted(rows, body, { ...FRAME, contentType: 'application/json' })).toEqual({ credentials: 1 })
  })

  it('are counted in the traits of a session', async () => {
    const rows = createSessionsBatch({ of: async () => DEFAULT_SCRUBBER })
    await rows.prepare?.([FRAME])
    const traits = JSON.stringify({ password: 'p', deep: [{ apiKey: { token: 't' } }], name: 'n' })
    const session = { kind: 'identify', sessionId: 's', identifier: 'i', source: { type: 'custom', name: 'n' } }
    const event = (more: object) => Buffer.from(JSON.stringify({ ...session, ...more }))
    expect(counted(rows, event({ traits }))).toEqual({ credentials: 2 })
    expect(counted(rows, event({}))).toBeUndefined()
  })
})
