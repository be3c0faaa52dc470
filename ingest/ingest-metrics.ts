import type { QueueName } from '../schemas/jobs.ts'
import type { Route } from '../shared/http-server.ts'
import { type Counter, type Histogram, LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/metrics.ts'
import type { Admission } from './admit.ts'

export interface IngestMetrics {
  observeCommit(queue: QueueName, frames: number, bytes: number, durationMs: number): void
  watchBacklog(admission: Admission, queues: readonly QueueName[]): void
}

export function createIngestMetrics(metrics: Metrics): IngestMetrics {
  const frames = metrics.counter({
    name: 'penstock_accepted_payloads_total',
    help: 'Requests on disk in Redis.',
    labelNames: ['queue'],
  })
  const bytes = metrics.counter({
    name: 'penstock_accepted_bytes_total',
    help: 'Their framed bytes.',
    labelNames: ['queue'],
  })
  const commitFrames = metrics.histogram({
    name: 'penstock_commit_frames',
    help: 'Requests per commit.',
    labelNames: ['queue'],
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  })
  const commitSeconds = metrics.histogram({
    name: 'penstock_commit_seconds',
    help: 'From the write of a commit to its confirmation.',
    labelNames: ['queue'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  return {
    observeCommit(queue, count, size, durationMs) {
      frames.inc({ queue }, count)
      bytes.inc({ queue }, size)
      commitFrames.observe({ queue }, count)
      commitSeconds.observe({ queue }, durationMs / 1_000)
    },
    watchBacklog(admission, queues) {
      metrics.gauge({
        name: 'penstock_queue_payloads',
        help: 'Requests accepted and not yet stored.',
        labelNames: ['queue'],
        collect() {
          for (const queue of queues) this.set({ queue }, admission.backlog(queue).payloads)
        },
      })
      metrics.gauge({
        name: 'penstock_queue_bytes',
        help: 'Their framed bytes.',
        labelNames: ['queue'],
        collect() {
          for (const queue of queues) this.set({ queue }, admission.backlog(queue).bytes)
        },
      })
    },
  }
}

/** Counts answers by route and status. The label lookup is done once per pair: this runs on every request. */
export function createRequestObserver(metrics: Metrics): (route: Route, status: number, durationMs: number) => void {
  const requests = metrics.counter({
    name: 'penstock_requests_total',
    help: 'Answers by route and status.',
    labelNames: ['method', 'route', 'status'],
  })
  const seconds = metrics.histogram({
    name: 'penstock_request_seconds',
    help: 'From the head of a request to its answer.',
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
