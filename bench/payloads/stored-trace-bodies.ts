import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type { SpanSchema } from '../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { int, text } from './attributes.ts'
import { below, drawBytes, type Random } from './zipf.ts'

/** Traces of a service, and the requests in which their spans arrive. */
interface StoredTracesOptions {
  readonly traces: number
  readonly spansPerTrace: number
  /** Number of requests. Each has as many spans of every trace. */
  readonly bodies: number
  readonly service: string
  /** Returns the number of the error of a trace, whose root span has an exception then. */
  readonly errorOf: (trace: number) => number | undefined
  /** Returns the text that identifies a trace in its path and in its session. */
  readonly markOf: (trace: number) => string
}

const ROUTES = Array.from({ length: 50 }, (_, i) => `/api/resource-${i}/:id`)
const SPAN_EVERY_NANOS = 1_234_567n
const SLOWEST_MS = 200
const STACK = Array.from(
  { length: 8 },
  (_, depth) => `    at OrderRepository.load${depth} (/srv/shop/dist/orders/repository-${depth}.js:${120 + depth}:17)`,
).join('\n')

/**
 * Creates requests with the spans of some traces: trees with four children a span, whose spans start 1.2 ms apart. The same
 * `random` gives the same bytes.
 */
export function storedTraceBodies(
  random: Random,
  options: StoredTracesOptions,
): { readonly bodies: Buffer[]; readonly traceIds: Buffer[] } {
  const { traces, spansPerTrace, service, markOf } = options
  const resource = {
    attributes: [
      text('service.name', service),
      text('service.version', '2.14.3'),
      text('host.name', `ip-10-12-33-${below(random, 200)}`),
      int('process.pid', 31_337),
    ],
  }
  const trees = Array.from({ length: traces }, (_, trace) => ({
    traceId: drawBytes(random, 16),
    spanIds: Array.from({ length: spansPerTrace }, () => drawBytes(random, 8)),
    mark: markOf(trace),
    error: options.errorOf(trace),
  }))
  const perBody = Math.ceil(spansPerTrace / options.bodies)
  const bodies = Array.from({ length: options.bodies }, (_, i) => {
    const end = Math.min((i + 1) * perBody, spansPerTrace)
    const spans = trees.flatMap(tree =>
      Array.from({ length: Math.max(0, end - i * perBody) }, (_, j) => makeSpan(random, tree, i * perBody + j)),
    )
    const scopeSpans = [{ scope: { name: '@opentelemetry/instrumentation-http', version: '0.205.0' }, spans }]
    const request = create(ExportTraceServiceRequestSchema, { resourceSpans: [{ resource, scopeSpans }] })
    return Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
  })
  return { bodies, traceIds: trees.map(({ traceId }) => traceId) }
}

interface Tree {
  readonly traceId: Buffer
  readonly spanIds: readonly Buffer[]
  readonly mark: string
  readonly error: number | undefined
}

function makeSpan(
  random: Random,
  { traceId, spanIds, mark, error }: Tree,
  position: number,
): MessageInitShape<typeof SpanSchema> {
  const isRoot = position === 0
  const fails = position % 50 === 49
  const route = ROUTES[below(random, ROUTES.length)] as string
  const start = 1_700_000_000_000_000_000n + BigInt(position) * SPAN_EVERY_NANOS
  return {
    traceId,
    spanId: spanIds[position] as Buffer,
    ...(!isRoot && { parentSpanId: spanIds[(position - 1) >> 2] as Buffer }),
    name: `GET ${route}`,
    kind: isRoot ? 2 : 3,
    startTimeUnixNano: start,
    endTimeUnixNano: start + BigInt(below(random, SLOWEST_MS * 1_000_000)),
    flags: 0x101,
    status: fails ? { code: 2, message: 'the order could not be loaded' } : { code: 0 },
    attributes: [
      text('http.request.method', 'GET'),
      text('url.path', `/api/${mark}`),
      int('http.response.status_code', 200),
      text('server.address', 'shop.example.com'),
      ...(isRoot ? [text('http.route', route), text('session.id', `session-${mark}`)] : []),
    ],
    events: isRoot && error !== undefined ? [exceptionEvent(error, start)] : [],
  }
}

function exceptionEvent(error: number, timeUnixNano: bigint) {
  const [type, message] = [`OrderError${error}`, `cannot read property ${error} of the order`]
  return {
    timeUnixNano,
    name: 'exception',
    attributes: [
      text('exception.type', type),
      text('exception.message', message),
      text('exception.stacktrace', `${type}: ${message}\n${STACK}`),
    ],
  }
}
