import { HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import { attributesOf, nanosOf } from './otlp.ts'
import { resourceOf, type Service } from './services.ts'
import type { Telemetry } from './telemetry.ts'
import { count } from './truth.ts'

const SCOPE = { name: 'example.shop', version: '1' }
const BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
/** Medians of the durations of requests in ms. */
const MEDIANS: readonly (readonly [Service, number])[] = [
  ['gateway', 35],
  ['orders', 140],
  ['payment', 190],
  ['pricing', 9],
]
const POINTS_A_METRIC = 300

/** A point, and for which service and metric. */
interface Point {
  readonly service: Service
  readonly name: string
  readonly unit: string
  readonly description: string
  readonly kind: 'gauge' | 'sum' | 'histogram' | 'exponentialHistogram'
  readonly more?: object
  readonly point: object
}

const CUMULATIVE = { aggregationTemporality: 2 }
const DELTA = { aggregationTemporality: 1 }

/** Makes a point a minute of each metric: gauges, sums, histograms with bounds and exponential ones. */
export function measure(telemetry: Telemetry, nowMs: number, hours: number): void {
  const beganMs = nowMs - hours * HOUR_MS
  // Two runs are two processes of a service, so that their series are not one.
  const instance = { 'service.instance.id': telemetry.random.uuid() }
  const points = [
    ...MEDIANS.flatMap(([service, median]) => [
      ...durations(telemetry, service, median, beganMs, nowMs),
      ...memory(telemetry, service, beganMs, nowMs),
    ]),
    ...orders(telemetry, beganMs, nowMs),
    ...acquirer(telemetry, beganMs, nowMs),
  ]
  for (const own of Map.groupBy(points, ({ service, name }) => `${service} ${name}`).values()) {
    for (let at = 0; at < own.length; at += POINTS_A_METRIC) {
      const part = own.slice(at, at + POINTS_A_METRIC)
      const { service, name, unit, description, kind, more } = part[0] as Point
      telemetry.metrics.push({
        resource: { ...resourceOf(service, ''), ...instance },
        scope: SCOPE,
        record: { name, unit, description, [kind]: { ...more, dataPoints: part.map(({ point }) => point) } },
      })
      count(telemetry.truth, 'points', name, part.length)
    }
  }
}

function* minutes(beganMs: number, endMs: number): Generator<number> {
  for (let at = beganMs + MINUTE_MS; at <= endMs; at += MINUTE_MS) yield at
}

/** More is sold in the evening than at night. */
const loadAt = (at: number) => 1 + Math.sin(((at % (24 * HOUR_MS)) / (24 * HOUR_MS) - 0.3) * 2 * Math.PI)

function* durations({ random, truth }: Telemetry, service: Service, median: number, from: number, to: number) {
  const bucketCounts = new Array<number>(BOUNDS_S.length + 1).fill(0)
  let sum = 0
  for (const at of minutes(from, to)) {
    const requests = random.int(4, 9) + Math.round(8 * loadAt(at))
    for (let i = 0; i < requests; i++) {
      const seconds = random.ms(median, 0.6) / 1_000
      const bucket = BOUNDS_S.findIndex(bound => seconds <= bound)
      const index = bucket < 0 ? BOUNDS_S.length : bucket
      bucketCounts[index] = (bucketCounts[index] ?? 0) + 1
      sum += seconds
    }
    const point = {
      startTimeUnixNano: nanosOf(from),
      timeUnixNano: nanosOf(at),
      count: String(bucketCounts.reduce((a, b) => a + b, 0)),
      sum,
      explicitBounds: BOUNDS_S,
      bucketCounts: bucketCounts.map(String),
      attributes: attributesOf({ 'http.request.method': 'POST' }),
    }
    const name = 'http.server.request.duration'
    const description = 'Duration of HTTP server requests.'
    yield { service, name, unit: 's', description, kind: 'histogram', more: CUMULATIVE, point } as const
  }
  count(truth, 'sums', 'http.server.request.duration', sum)
}

function* memory({ random }: Telemetry, service: Service, from: number, to: number) {
  for (const at of minutes(from, to)) {
    const bytes = 180_000_000 + Math.round(40_000_000 * loadAt(at)) + random.int(0, 5_000_000)
    const point = { timeUnixNano: nanosOf(at), asInt: String(bytes), attributes: [] }
    const description = 'Physical memory in use.'
    yield { service, name: 'process.memory.usage', unit: 'By', description, kind: 'gauge', point } as const
  }
}

function* orders({ random, truth }: Telemetry, from: number, to: number) {
  let placed = 0
  for (const at of minutes(from, to)) {
    placed += random.int(0, Math.round(2 * loadAt(at)))
    const times = { startTimeUnixNano: nanosOf(from), timeUnixNano: nanosOf(at) }
    const sum = { service: 'orders', kind: 'sum' } as const
    const increasing = { ...CUMULATIVE, isMonotonic: true }
    const attributes = attributesOf({ 'payment.method': 'card' })
    const point = { ...times, asInt: String(placed), attributes }
    const description = 'Orders that were placed.'
    yield { ...sum, name: 'shop.orders', unit: '{order}', description, more: increasing, point } as const
    const open = { ...times, asInt: String(random.int(10, 60)), attributes: [] }
    const carts = { name: 'shop.carts.open', unit: '{cart}', description: 'Carts that are open.' }
    yield { ...sum, ...carts, more: { ...CUMULATIVE, isMonotonic: false }, point: open } as const
  }
  count(truth, 'sums', 'shop.orders', placed)
}

function* acquirer({ random, truth }: Telemetry, from: number, to: number) {
  for (const at of minutes(from, to)) {
    const bucketCounts = Array.from({ length: 12 }, () => random.int(0, 5))
    const observations = bucketCounts.reduce((a, b) => a + b, 0)
    const point = {
      startTimeUnixNano: nanosOf(at - MINUTE_MS),
      timeUnixNano: nanosOf(at),
      count: String(observations),
      sum: observations * 0.21,
      scale: 2,
      zeroCount: '0',
      positive: { offset: -12, bucketCounts: bucketCounts.map(String) },
      attributes: attributesOf({ 'payment.method': random.pick(['card', 'paypal']) }),
    }
    count(truth, 'sums', 'payment.acquirer.duration', point.sum)
    const metric = { name: 'payment.acquirer.duration', unit: 's', description: 'Time that the acquirer takes.' }
    yield { service: 'payment', kind: 'exponentialHistogram', ...metric, more: DELTA, point } as const
  }
}
