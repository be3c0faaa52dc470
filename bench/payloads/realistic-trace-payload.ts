import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ExportTraceServiceRequestSchema } from '../../schemas/otlp/generated/opentelemetry/proto/collector/trace/v1/trace_service_pb.js'
import type {
  Span_EventSchema,
  SpanSchema,
} from '../../schemas/otlp/generated/opentelemetry/proto/trace/v1/trace_pb.js'
import { int, text } from './attributes.ts'
import { drawService, type Service } from './realistic-service.ts'
import { below, createRandom, createZipf, drawBytes, drawDuration, type Random } from './zipf.ts'

type SpanInit = MessageInitShape<typeof SpanSchema>
type EventInit = MessageInitShape<typeof Span_EventSchema>
type Attribute = ReturnType<typeof text> | ReturnType<typeof int>

/** Part of the spans with an exception, with another event, and with a link. */
const EXCEPTION_SHARE = 0.05
const EVENT_SHARE = 0.1
const LINK_SHARE = 0.01
/** Spans of one service in a payload. A collector before the service sends several services at once. */
const SPANS_PER_RESOURCE = 50
const USERS = 200_000
const drawUser = createZipf(USERS)
const drawTraceLength = createZipf(40, 0.8)
const drawAgent = createZipf(400)
const drawAny = createZipf(64)

/**
 * Creates an ExportTraceServiceRequest as a real system sends it: services, hosts, routes, statements, users and errors by
 * Zipf's law, 4 to 14 attributes a span by its kind, traces as trees of 1 to 40 spans. The same number gives the same bytes
 * but for the time.
 */
export function realisticTracePayload(spans: number, number: number): Buffer {
  const random = createRandom(number + 1)
  const resources = Math.ceil(spans / SPANS_PER_RESOURCE)
  const request = create(ExportTraceServiceRequestSchema, {
    resourceSpans: Array.from({ length: resources }, (_, i) => {
      const service = drawService(random)
      const count = Math.floor(((i + 1) * spans) / resources) - Math.floor((i * spans) / resources)
      return {
        resource: { attributes: resourceAttributes(random, service) },
        schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
        scopeSpans: [{ scope: scopeOf(service), spans: makeSpans(random, service, count) }],
      }
    }),
  })
  return Buffer.from(toBinary(ExportTraceServiceRequestSchema, request))
}

function scopeOf({ language }: Service) {
  return { name: `io.opentelemetry.${language}.instrumentation`, version: '2.17.1' }
}

function makeSpans(random: Random, service: Service, count: number): SpanInit[] {
  const spans: SpanInit[] = []
  while (spans.length < count) {
    const length = Math.min(1 + drawTraceLength(random), count - spans.length)
    spans.push(...makeTrace(random, service, length))
  }
  return spans
}

/** Creates the spans of a trace. Each but the first is the child of an earlier one. */
function makeTrace(random: Random, service: Service, length: number): SpanInit[] {
  const traceId = drawBytes(random, 16)
  const ids: Buffer[] = []
  const beganAt = BigInt(Date.now()) * 1_000_000n
  return Array.from({ length }, (_, i) => {
    const spanId = drawBytes(random, 8)
    const parentSpanId = i === 0 ? undefined : ids[below(random, i)]
    ids.push(spanId)
    const start = beganAt + BigInt(below(random, 50_000_000))
    const fails = random() < EXCEPTION_SHARE
    const kind = i === 0 ? SERVER : ([INTERNAL, CLIENT, CLIENT][below(random, 3)] as number)
    const { name, attributes } = describe(random, service, kind, fails)
    return {
      traceId,
      spanId,
      ...(parentSpanId && { parentSpanId }),
      name,
      kind,
      startTimeUnixNano: start,
      endTimeUnixNano: start + drawDuration(random, kind === INTERNAL ? 0.4 : 12),
      flags: 0x101,
      status: fails ? { code: 2, message: 'the request failed' } : { code: 0 },
      attributes,
      events: [
        ...(fails ? [exceptionEvent(random, service, start)] : []),
        ...(random() < EVENT_SHARE ? [logEvent(random, start)] : []),
      ],
      links: random() < LINK_SHARE ? [{ traceId: drawBytes(random, 16), spanId: drawBytes(random, 8) }] : [],
    }
  })
}

const INTERNAL = 1
const SERVER = 2
const CLIENT = 3

/** Returns name and attributes of a span by its kind: a request that is served, a function, a query or a call. */
function describe(random: Random, service: Service, kind: number, fails: boolean) {
  if (kind === SERVER) return describeServer(random, service, fails)
  if (kind === INTERNAL) {
    const name = `${service.name}.${pick(random, service.routes).split('/')[3]}`
    return { name, attributes: [text('code.function.name', name), int('thread.id', below(random, 64))] }
  }
  const statement = pick(random, service.statements)
  const [operation = ''] = statement.split(' ', 1)
  return {
    name: `${operation} ${service.name}`,
    attributes: [
      text('db.system.name', 'postgresql'),
      text('db.namespace', service.name),
      text('db.operation.name', operation),
      text('db.query.text', statement),
      text('server.address', `db-${drawAny(random) % 6}.internal.example.com`),
      int('server.port', 5_432),
      int('db.response.returned_rows', drawAny(random)),
    ],
  }
}

function describeServer(random: Random, service: Service, fails: boolean): { name: string; attributes: Attribute[] } {
  const method = ['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE'][below(random, 6)] as string
  const route = pick(random, service.routes)
  const user = drawUser(random)
  return {
    name: `${method} ${route}`,
    attributes: [
      text('http.request.method', method),
      text('http.route', route),
      text(
        'url.path',
        route.replaceAll(/\{[^}]*\}/g, () => String(drawUser(random))),
      ),
      text('url.scheme', 'https'),
      text('server.address', `${service.name}.example.com`),
      int('server.port', 443),
      int(
        'http.response.status_code',
        fails ? 500 : ([200, 200, 200, 201, 204, 304, 400, 404][drawAny(random) % 8] as number),
      ),
      int('http.response.body.size', 200 + below(random, 40_000)),
      text('network.protocol.version', random() < 0.7 ? '2' : '1.1'),
      text('client.address', `${1 + (user % 223)}.${(user >> 3) % 256}.${(user >> 5) % 256}.${user % 251}`),
      text('user_agent.original', userAgent(drawAgent(random))),
      text('enduser.id', `user-${user}`),
      ...(random() < 0.6
        ? [text('session.id', `${user.toString(16).padStart(8, '0')}-8d4f-4f0e-9a57-0f7c1b1e8d4f`)]
        : []),
      ...(random() < 0.2 ? [text('feature_flag.key', `flag-${drawAny(random)}`)] : []),
    ],
  }
}

const userAgent = (rank: number) =>
  `Mozilla/5.0 (${['Windows NT 10.0; Win64; x64', 'Macintosh; Intel Mac OS X 10_15_7', 'Linux; Android 14; K', 'iPhone; CPU iPhone OS 18_1 like Mac OS X'][rank % 4]}) ` +
  `AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${120 + (rank % 30)}.0.${(rank * 37) % 7_000}.0 Safari/537.36`

function exceptionEvent(random: Random, service: Service, start: bigint): EventInit {
  const { type, message, stack } = pick(random, service.errors)
  const full = `${message} ${drawUser(random)}`
  return {
    timeUnixNano: start + 100_000n,
    name: 'exception',
    attributes: [
      text('exception.type', type),
      text('exception.message', full),
      text('exception.stacktrace', `${type}: ${full}\n${stack}`),
    ],
  }
}

function logEvent(random: Random, start: bigint): EventInit {
  const name = ['cache.miss', 'retry', 'message.sent', 'lock.acquired'][drawAny(random) % 4] as string
  return {
    timeUnixNano: start + 50_000n,
    name,
    attributes: [text('key', `${name}:${drawUser(random)}`), int('attempt', 1 + (drawAny(random) % 5))],
  }
}

function resourceAttributes(random: Random, service: Service) {
  const host = pick(random, service.hosts)
  return [
    text('service.name', service.name),
    text('service.version', service.version),
    text('service.namespace', 'shop'),
    text('service.instance.id', host.instanceId),
    text('deployment.environment.name', 'production'),
    text('host.name', host.name),
    text('cloud.availability_zone', host.zone),
    text('k8s.pod.name', host.pod),
    int('process.pid', host.pid),
    text('process.runtime.name', service.language),
    text('telemetry.sdk.language', service.language),
    text('telemetry.sdk.version', '2.1.0'),
  ]
}

/** Draws an item by Zipf's law. */
function pick<T>(random: Random, items: readonly T[]): T {
  return items[drawAny(random) % items.length] as T
}
