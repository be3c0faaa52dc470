import { randomBytes, randomInt } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import { int, text, webService } from './attributes.ts'

/** Options of `tracePayload`. */
interface TracePayloadOptions {
  spans: number
  /** Spans of one trace. All are children of the first. */
  spansPerTrace: number
  /** One in this many spans fails with an `exception` event. 0: none. */
  exceptionEvery: number
  service?: string
}

const ROUTES = ['/api/orders/:id', '/api/carts/:id/items', '/api/products', '/api/checkout', '/healthz']
const METHODS = ['GET', 'POST', 'GET', 'PUT']

/**
 * Creates an ExportTraceServiceRequest like that of a web service: ten resource attributes, eight attributes per span.
 */
export function tracePayload({
  spans,
  spansPerTrace,
  exceptionEvery,
  service = 'shop-checkout',
}: TracePayloadOptions): Buffer {
  let traceId = randomBytes(16)
  let rootId = randomBytes(8)
  const request = create(ExportTraceServiceRequestSchema, {
    resourceSpans: [
      {
        resource: { attributes: webService(service) },
        schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
        scopeSpans: [
          {
            scope: { name: '@opentelemetry/instrumentation-http', version: '0.205.0' },
            spans: Array.from({ length: spans }, (_, i) => {
              const isRoot = i % spansPerTrace === 0
              if (isRoot) traceId = randomBytes(16)
              const spanId = randomBytes(8)
              const parentSpanId = isRoot ? undefined : rootId
              if (isRoot) rootId = spanId
              const route = ROUTES[i % ROUTES.length] as string
              const method = METHODS[i % METHODS.length] as string
              const startTimeUnixNano = BigInt(Date.now()) * 1_000_000n + BigInt(i) * 1_234_567n
              const fails = exceptionEvery > 0 && i % exceptionEvery === 0
              return {
                traceId,
                spanId,
                ...(parentSpanId ? { parentSpanId } : {}),
                name: `${method} ${route}`,
                kind: isRoot ? 2 : 3,
                startTimeUnixNano,
                endTimeUnixNano: startTimeUnixNano + BigInt(randomInt(200_000_000)),
                flags: 0x101,
                status: fails ? { code: 2, message: 'the order could not be loaded' } : { code: 0 },
                attributes: [
                  text('http.request.method', method),
                  text('http.route', route),
                  text('url.path', `/api/orders/${randomInt(1_000_000)}`),
                  text('server.address', 'shop.example.com'),
                  int('server.port', 443n),
                  int('http.response.status_code', fails ? 500n : 200n),
                  text('network.protocol.version', '1.1'),
                  text('user_agent.original', 'Mozilla/5.0 (X11; Linux x64)'),
                ],
                events: fails ? [exceptionEvent(i, startTimeUnixNano)] : [],
              }
            }),
          },
        ],
      },
    ],
  })
  return Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
}

function exceptionEvent(i: number, timeUnixNano: bigint) {
  const frames = Array.from(
    { length: 12 },
    (_, depth) =>
      `    at OrderRepository.load${depth} (/srv/shop/dist/orders/repository-${depth}.js:${120 + depth}:17)`,
  )
  return {
    timeUnixNano,
    name: 'exception',
    attributes: [
      text('exception.type', 'OrderNotFoundError'),
      text('exception.message', `order ${i} was not found`),
      text('exception.stacktrace', [`OrderNotFoundError: order ${i} was not found`, ...frames].join('\n')),
    ],
  }
}
