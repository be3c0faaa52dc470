import type { QueueName } from '../schemas/jobs.ts'
import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/metrics.ts'
import type { Admission } from './admit.ts'
import type { MetadataFault } from './replay-metadata.ts'

export interface IngestMetrics {
  observeCommit(queue: QueueName, frames: number, bytes: number, durationMs: number): void
  /** A replay chunk without usable metadata: acknowledged, and not kept. */
  countIgnoredReplay(reason: MetadataFault): void
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
  const ignoredReplay = metrics.counter({
    name: 'penstock_ignored_replay_chunks_total',
    help: 'Replay chunks without usable metadata: acknowledged with an empty key, and not kept.',
    labelNames: ['reason'],
  })
  return {
    countIgnoredReplay: reason => ignoredReplay.inc({ reason }),
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
