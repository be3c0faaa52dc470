import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import {
  type ExportTraceServiceRequest,
  ExportTraceServiceRequestSchema,
} from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { anyValue, attributes, EXCEPTION_KEYS, resource, scope, text, uint32, uint64 } from './otlp-values.ts'

const id = (length: number) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.uint8Array({ minLength: length, maxLength: length }) },
    { weight: 1, arbitrary: fc.constant(new Uint8Array(length)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }) },
  )

const event = fc.record({
  timeUnixNano: uint64,
  name: fc.oneof(text, fc.constantFrom('exception', 'exceptional')),
  attributes: fc.oneof(
    attributes,
    fc.array(fc.record({ key: fc.constantFrom(...EXCEPTION_KEYS), value: anyValue }), { maxLength: 5 }),
  ),
  droppedAttributesCount: uint32,
})

const link = fc.record({
  traceId: id(16),
  spanId: id(8),
  traceState: text,
  attributes,
  droppedAttributesCount: uint32,
  flags: uint32,
})

const span = fc.record({
  traceId: id(16),
  spanId: id(8),
  parentSpanId: fc.oneof(fc.constant(new Uint8Array()), id(8)),
  traceState: text,
  name: text,
  kind: fc.oneof({ weight: 5, arbitrary: fc.nat(5) }, { weight: 1, arbitrary: fc.constantFrom(6, 99, -1) }),
  startTimeUnixNano: uint64,
  endTimeUnixNano: uint64,
  attributes,
  droppedAttributesCount: uint32,
  events: fc.array(event, { maxLength: 3 }),
  droppedEventsCount: uint32,
  links: fc.array(link, { maxLength: 2 }),
  droppedLinksCount: uint32,
  status: fc.record({ message: text, code: fc.constantFrom(0, 1, 2, 3, -1) }),
  flags: uint32,
})

/** Spans with any of their fields, or none. */
const partialSpan = fc.oneof(
  { weight: 3, arbitrary: span },
  { weight: 1, arbitrary: fc.record({ ...fields(span) }, { requiredKeys: ['traceId', 'spanId'] }) },
)

function fields(_: typeof span) {
  return { traceId: id(16), spanId: id(8), name: text, attributes, events: fc.array(event, { maxLength: 2 }) }
}

/** Generates random ExportTraceServiceRequest messages. */
export const traceRequest: fc.Arbitrary<ExportTraceServiceRequest> = fc
  .array(
    fc.record(
      {
        resource,
        schemaUrl: text,
        scopeSpans: fc.array(
          fc.record(
            { scope, schemaUrl: text, spans: fc.array(partialSpan, { maxLength: 4 }) },
            { requiredKeys: ['spans'] },
          ),
          { maxLength: 2 },
        ),
      },
      { requiredKeys: ['scopeSpans'] },
    ),
    { maxLength: 2 },
  )
  .map(resourceSpans => create(ExportTraceServiceRequestSchema, { resourceSpans } as never))
