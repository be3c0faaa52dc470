import type { QueueName } from '../schemas/jobs.ts'
import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/metrics.ts'
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
