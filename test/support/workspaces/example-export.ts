import { randomBytes } from 'node:crypto'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { KeyValueSchema } from '../../../schemas/otlp/generated/opentelemetry/proto/common/v1/common_pb.js'
import {
  Span_SpanKind,
  Status_StatusCode,
} from '../../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { identify } from '../../../shared/grouping/fingerprint.ts'

/** An export request, and the ids under which its span can be read. */
interface Example {
  traceId: string
  spanId: string
  findingId: string
  body: Uint8Array
}

/** Name of the service of the span. */
export const SERVICE = 'penstock-example'
const EXCEPTION = {
  type: 'EmptyCartError',
  message: 'the cart is empty',
  stacktrace: 'EmptyCartError: the cart is empty\n    at checkout (cart.js:12:7)',
}

/** Returns an OTLP export of one failed span with an exception, which creates a finding. */
export function exampleExport(owner: { workspaceId: string; surfaceId: string }, nowMs: number): Example {
  const traceId = randomBytes(16)
  const spanId = randomBytes(8)
  const endTimeUnixNano = BigInt(nowMs) * 1_000_000n
  const request = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: { attributes: [text('service.name', SERVICE), text('service.version', '1.0.0')] },
        scopeSpans: [
          {
            scope: { name: 'penstock.example' },
            spans: [
              {
                traceId,
                spanId,
                name: 'GET /checkout',
                kind: Span_SpanKind.SERVER,
                startTimeUnixNano: endTimeUnixNano - 42_000_000n,
                endTimeUnixNano,
                attributes: [text('http.request.method', 'GET'), text('http.route', '/checkout')],
                status: { code: Status_StatusCode.ERROR, message: EXCEPTION.message },
                events: [
                  {
                    name: 'exception',
                    timeUnixNano: endTimeUnixNano - 1_000_000n,
                    attributes: [
                      text('exception.type', EXCEPTION.type),
                      text('exception.message', EXCEPTION.message),
                      text('exception.stacktrace', EXCEPTION.stacktrace),
                    ],
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  })
  return {
    traceId: traceId.toString('hex'),
    spanId: spanId.toString('hex'),
    findingId: identify({ ...owner, serviceName: SERVICE, ...EXCEPTION }).id,
    body: toBinary(ExportTraceServiceRequestSchema, request),
  }
}

function text(key: string, value: string): MessageInitShape<typeof KeyValueSchema> {
  return { key, value: { value: { case: 'stringValue', value } } }
}
