import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../../runtime/metrics.ts'
import type { HistogramSeries } from '../../runtime/series-histogram.ts'
import type { Route } from '../route.ts'

/** The responses of the routes with one method and path. */
interface RouteCounts {
  readonly method: string
  readonly path: string
  /** Number of responses by status. */
  readonly statuses: Float64Array
  readonly seconds: HistogramSeries
}

/** A route as the metrics name it. */
type NamedRoute = Pick<Route, 'method' | 'path'>

/** Statuses are less than this. */
const STATUSES = 600

/**
 * Returns an observer that counts responses. It runs on every request, so it counts in arrays, and only a reader of the metrics
 * pays for their names.
 */
export function createRequestObserver(
  metrics: Metrics,
): (route: NamedRoute, status: number, durationMs: number) => void {
  const counts = new Map<string, RouteCounts>()
  const countsOfRoutes = new Map<NamedRoute, RouteCounts>()
  metrics.counter({
    name: 'penstock_requests_total',
    help: 'Responses by route and status.',
    labelNames: ['method', 'route', 'status'],
    collect() {
      this.reset()
      for (const { method, path, statuses } of counts.values()) {
        for (const [status, responses] of statuses.entries()) {
          if (responses > 0) this.inc({ method, route: path, status: String(status) }, responses)
        }
      }
    },
  })
  const seconds = metrics.seriesHistogram({
    name: 'penstock_request_seconds',
    help: 'Seconds from the head of a request to its response.',
    buckets: LATENCY_BUCKETS_SECONDS,
  })

  /** Returns new counts, or those of another route with this method and path. */
  function addRoute(route: NamedRoute): RouteCounts {
    const { method, path } = route
    const key = `${method} ${path}`
    const known = counts.get(key) ?? {
      method,
      path,
      statuses: new Float64Array(STATUSES),
      seconds: seconds.series({ method, route: path }),
    }
    counts.set(key, known)
    countsOfRoutes.set(route, known)
    return known
  }

  return (route, status, durationMs) => {
    const known = countsOfRoutes.get(route) ?? addRoute(route)
    known.statuses[status] = (known.statuses[status] as number) + 1
    known.seconds.observe(durationMs / 1_000)
  }
}
