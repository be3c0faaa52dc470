import { randomBytes } from 'node:crypto'
import { MINUTE_MS } from '../../../schemas/units.ts'

/** A span to send. Times are in milliseconds after the start of its trace. */
export interface StagedSpan {
  readonly id: string
  readonly parent?: string
  readonly name: string
  readonly service: string
  readonly startMs: number
  readonly ms: number
  readonly isError?: boolean
  readonly attributes?: Readonly<Record<string, string>>
  readonly exception?: { readonly type: string; readonly message: string; readonly stack: string }
}

const attributesOf = (attributes: Readonly<Record<string, string>>) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: value } }))

/** Returns spans of one trace as an export request of OTLP in JSON. */
export function traceExport(traceId: string, startMs: number, spans: readonly StagedSpan[]): object {
  const nanos = (ms: number) => String(BigInt(Math.round((startMs + ms) * 1_000)) * 1_000n)
  const services = [...new Set(spans.map(({ service }) => service))]
  return {
    resourceSpans: services.map(service => ({
      resource: { attributes: attributesOf({ 'service.name': service, 'service.version': '1.4.2' }) },
      scopeSpans: [
        {
          scope: { name: 'staged', version: '1' },
          spans: spans
            .filter(span => span.service === service)
            .map(span => ({
              traceId,
              spanId: span.id,
              ...(span.parent && { parentSpanId: span.parent }),
              name: span.name,
              kind: 2,
              startTimeUnixNano: nanos(span.startMs),
              endTimeUnixNano: nanos(span.startMs + span.ms),
              attributes: attributesOf(span.attributes ?? {}),
              status: span.isError ? { code: 2, message: span.exception?.message ?? 'failed' } : {},
              events: span.exception
                ? [
                    {
                      name: 'exception',
                      timeUnixNano: nanos(span.startMs + span.ms),
                      attributes: attributesOf({
                        'exception.type': span.exception.type,
                        'exception.message': span.exception.message,
                        'exception.stacktrace': span.exception.stack,
                      }),
                    },
                  ]
                : [],
            })),
        },
      ],
    })),
  }
}

/** Returns three log records of a span and a session as an export request of OTLP in JSON. */
export function logExport(traceId: string, spanId: string, session: string, atMs: number): object {
  const records = [
    { severityNumber: 9, severityText: 'INFO', text: 'the cart has 2 items' },
    { severityNumber: 13, severityText: 'WARN', text: 'the price list is 4 hours old' },
    { severityNumber: 17, severityText: 'ERROR', text: 'no price of "pen" in 1' },
  ]
  return {
    resourceLogs: [
      {
        resource: { attributes: attributesOf({ 'service.name': 'pricing', 'service.version': '1.4.2' }) },
        scopeLogs: [
          {
            scope: { name: 'staged', version: '1' },
            logRecords: records.map(({ severityNumber, severityText, text }, i) => ({
              timeUnixNano: String(BigInt(atMs + i) * 1_000_000n),
              severityNumber,
              severityText,
              body: { stringValue: text },
              traceId,
              spanId,
              attributes: attributesOf({ 'session.id': session, 'cart.size': '2' }),
            })),
          },
        ],
      },
    ],
  }
}

/** Returns a gauge of two routes with a point each minute, but none in the middle third, as an export request of OTLP in JSON. */
export function metricExport(name: string, endMs: number, minutes: number, { unit = 's', factor = 1 } = {}): object {
  const times = Array.from({ length: minutes }, (_, i) => i).filter(i => i < minutes / 3 || i >= (2 * minutes) / 3)
  const dataPoints = ['/cart', '/orders'].flatMap((route, line) =>
    times.map(i => ({
      timeUnixNano: String(BigInt(endMs - (minutes - i) * MINUTE_MS) * 1_000_000n),
      asDouble: factor * (10 * (line + 1) + Math.sin(i / 3)),
      attributes: attributesOf({ 'http.route': route }),
    })),
  )
  const metric = { name, unit, description: 'Time that a request waits.', gauge: { dataPoints } }
  const resource = { attributes: attributesOf({ 'service.name': 'pricing' }) }
  return { resourceMetrics: [{ resource, scopeMetrics: [{ metrics: [metric] }] }] }
}

/** Sends an export request, which must be accepted. */
export async function send(
  access: { readonly baseUrl: string; readonly publicKey: string },
  signal: 'traces' | 'logs' | 'metrics',
  body: object,
): Promise<void> {
  const response = await fetch(`${access.baseUrl}/drain/v1/${signal}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-public-key': access.publicKey },
    body: JSON.stringify(body),
  })
  if (response.status !== 200) throw new Error(`${signal} were refused: ${response.status} ${await response.text()}`)
}

export const newTraceId = () => randomBytes(16).toString('hex')
export const spanIdOf = (index: number) => (index + 1).toString(16).padStart(16, '0')

const STACK = `UnknownPriceError: no price of "pen" in 1
    at lookUp (https://shop.example/assets/app-3f9c1a.js:1:4812)
    at async priceOf (https://shop.example/assets/app-3f9c1a.js:1:4655)
    at async Cart.checkout (https://shop.example/assets/app-3f9c1a.js:1:5120)
    at async placeOrder (https://shop.example/assets/app-3f9c1a.js:1:5533)`

/** The spans of an order that fails: five services, an exception, a parent that never arrives, and clocks that disagree. */
export function failedOrder(session: string): StagedSpan[] {
  const s = spanIdOf
  const browser = { 'session.id': session }
  return [
    { id: s(0), name: 'POST /checkout', service: 'web', startMs: 0, ms: 842, isError: true, attributes: browser },
    {
      id: s(1),
      parent: s(0),
      name: 'POST /api/orders',
      service: 'gateway',
      startMs: 12,
      ms: 810,
      isError: true,
      attributes: { 'http.request.method': 'POST', 'http.route': '/api/orders', 'http.response.status_code': '500' },
    },
    { id: s(2), parent: s(1), name: 'authenticate', service: 'accounts', startMs: 18, ms: 60 },
    {
      id: s(3),
      parent: s(2),
      name: 'SELECT accounts',
      service: 'database',
      startMs: 25,
      ms: 41,
      attributes: { 'db.system.name': 'postgresql', 'db.query.text': 'SELECT * FROM accounts WHERE id = $1' },
    },
    {
      id: s(4),
      parent: s(1),
      name: 'price the cart',
      service: 'pricing',
      startMs: 90,
      ms: 512,
      isError: true,
      exception: { type: 'UnknownPriceError', message: 'no price of "pen" in 1', stack: STACK },
    },
    { id: s(5), parent: s(4), name: 'GET /prices/pen', service: 'pricing', startMs: 86, ms: 120 },
    { id: s(6), parent: s(4), name: 'GET /prices/book', service: 'pricing', startMs: 215, ms: 380 },
    { id: s(7), parent: 'fffffffffffffff1', name: 'write the audit log', service: 'audit', startMs: 640, ms: 150 },
    { id: s(8), parent: s(1), name: 'roll back', service: 'database', startMs: 640, ms: 170 },
  ]
}
