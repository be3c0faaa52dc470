import { type Counter, type Histogram, LATENCY_BUCKETS_SECONDS, type Metrics } from '../../runtime/metrics.ts'
import type { Route } from '../route.ts'

/**
 * Returns an observer that counts responses. It looks labels up once per route and status, because it runs on every
 * request.
 */
export function createRequestObserver(metrics: Metrics): (route: Route, status: number, durationMs: number) => void {
  const requests = metrics.counter({
    name: 'penstock_requests_total',
    help: 'Responses by route and status.',
    labelNames: ['method', 'route', 'status'],
  })
  const seconds = metrics.histogram({
    name: 'penstock_request_seconds',
    help: 'Seconds from the head of a request to its response.',
    labelNames: ['method', 'route'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  const children = new Map<Route, { seconds: Histogram.Internal<string>; byStatus: Map<number, Counter.Internal> }>()
  return (route, status, durationMs) => {
    let child = children.get(route)
    if (child === undefined) {
      child = { seconds: seconds.labels({ method: route.method, route: route.path }), byStatus: new Map() }
      children.set(route, child)
    }
    let counter = child.byStatus.get(status)
    if (counter === undefined) {
      counter = requests.labels({ method: route.method, route: route.path, status: String(status) })
      child.byStatus.set(status, counter)
    }
    counter.inc()
    child.seconds.observe(durationMs / 1_000)
  }
}
