import { fromBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { storedTraceBodies } from '../payloads/stored-trace-bodies.ts'
import { createRandom } from '../payloads/zipf.ts'
import { renewedId, Template, valueMark, valueText } from './template.ts'

const spansOf = (body: Buffer) =>
  fromBinary(ExportTraceServiceRequestSchema, body).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans),
  )
const hex = (id: Uint8Array | undefined) => Buffer.from(id ?? []).toString('hex')

it('changes ids, times and values each time, and keeps traces together over several bodies', () => {
  const { bodies, traceIds } = storedTraceBodies(createRandom(1), {
    traces: 2,
    spansPerTrace: 10,
    bodies: 2,
    service: 'shop',
    errorOf: trace => (trace === 0 ? 7 : undefined),
    markOf: valueMark,
  })
  const templates = bodies.map(body => new Template('traces', body))
  for (const [change, firstMs] of [
    [0x1234, 1_700_000_000_000],
    [-5, 1_800_000_000_000],
  ] as const) {
    const spans = templates.flatMap(template => spansOf(template.take(change, firstMs, number => change + number)))
    for (const [trace, id] of traceIds.entries()) {
      const own = spans.filter(({ traceId }) => hex(traceId) === renewedId(id, change))
      expect(own).toHaveLength(10)
      const ids = new Set(own.map(({ spanId }) => hex(spanId)))
      const roots = own.filter(({ parentSpanId }) => !ids.has(hex(parentSpanId)))
      expect(roots.map(({ events }) => events.length)).toEqual([trace === 0 ? 1 : 0])
      const paths = own.map(({ attributes }) => attributes.find(({ key }) => key === 'url.path')?.value?.value.value)
      expect(new Set(paths)).toEqual(new Set([`/api/${valueText(change + trace)}`]))
    }
    const starts = spans.map(({ startTimeUnixNano }) => Number(startTimeUnixNano / 1_000_000n))
    expect(Math.min(...starts)).toBe(firstMs)
  }
})
