import { fromBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { LoadPlan } from './plan.ts'
import { buildBodies, createChanges, prepareRequest, renewIds } from './requests.ts'

const plan: LoadPlan = {
  port: 1,
  path: '/drain/v1/traces',
  headers: { 'x-service-public-key': 'pk' },
  connections: 1,
  payload: { spans: 45, pool: 1, freshIds: true },
  mode: { kind: 'closed' },
  warmUpMs: 0,
  durationMs: 0,
}

function spansOf(bytes: Buffer) {
  const request = fromBinary(ExportTraceServiceRequestSchema, bytes.subarray(bytes.indexOf('\r\n\r\n') + 4))
  const hex = (id: Uint8Array) => Buffer.from(id).toString('hex')
  return request.resourceSpans.flatMap(resource =>
    resource.scopeSpans.flatMap(scope =>
      scope.spans.map(({ traceId, spanId, parentSpanId, ...rest }) => ({
        traceId: hex(traceId),
        spanId: hex(spanId),
        parentSpanId: hex(parentSpanId),
        rest,
      })),
    ),
  )
}

it('renews every id of a request, and nothing else of it', () => {
  const [body = Buffer.alloc(0)] = buildBodies(plan.payload)
  const request = prepareRequest(plan, body, 0)
  const before = spansOf(request.bytes)
  const nextChange = createChanges(7)
  renewIds(request, nextChange())
  const after = spansOf(request.bytes)

  expect(after).toHaveLength(45)
  expect(after.map(span => span.rest)).toEqual(before.map(span => span.rest))
  const ids = (spans: typeof after) => spans.flatMap(span => [span.traceId, span.spanId])
  expect(new Set([...ids(before), ...ids(after)]).size).toBe(2 * new Set(ids(before)).size)
  const bySpanId = new Map(after.map(span => [span.spanId, span]))
  const children = after.filter(span => span.parentSpanId !== '')
  expect(children.length).toBeGreaterThan(0)
  for (const child of children) expect(bySpanId.get(child.parentSpanId)?.traceId).toBe(child.traceId)
})

it('never repeats a change', () => {
  const nextChange = createChanges(0)
  const seen = new Set(Array.from({ length: 100_000 }, nextChange))
  expect(seen.size).toBe(100_000)
  expect(seen).not.toContain(0)
})
