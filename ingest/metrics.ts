import type { QueueName } from '../schemas/queues/names.ts'
import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/runtime/metrics.ts'
import type { Admission } from './admission/admission.ts'
import type { MetadataFault } from './admission/replay-metadata.ts'
import type { ClaimOutcome } from './releases/claim-part.ts'
import type { VerdictWaits } from './releases/verdict-waits.ts'

export interface IngestMetrics {
  observeCommit(queue: QueueName, frames: number, bytes: number, durationMs: number): void
  /** A replay chunk without usable metadata: acknowledged, and not kept. */
  countIgnoredReplay(reason: MetadataFault): void
  countPart(outcome: ClaimOutcome): void
  countCompletion(outcome: CompletionOutcome): void
  observeVerdict(found: boolean, waitedMs: number): void
  watchVerdicts(waits: Pick<VerdictWaits, 'size'>): void
  watchBacklog(admission: Admission, queues: readonly QueueName[]): void
}

/** Accepted anew, or the same as one that is being worked on, or as one that is done. */
export type CompletionOutcome = 'accepted' | 'pending' | 'repeated'

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
  const parts = metrics.counter({
    name: 'penstock_source_map_parts_total',
    help: 'Parts of source maps by what became of their claims.',
    labelNames: ['outcome'],
  })
  const completions = metrics.counter({
    name: 'penstock_completions_total',
    help: 'Completions of source maps: accepted, or sent again while pending or once done.',
    labelNames: ['outcome'],
  })
  const verdictSeconds = metrics.histogram({
    name: 'penstock_verdict_wait_seconds',
    help: 'How long clients waited for what a worker found of their request; not found: until the deadline.',
    labelNames: ['outcome'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  return {
    countPart: outcome => parts.inc({ outcome }),
    countCompletion: outcome => completions.inc({ outcome }),
    observeVerdict: (found, waitedMs) =>
      verdictSeconds.observe({ outcome: found ? 'found' : 'not_found' }, waitedMs / 1_000),
    watchVerdicts(waits) {
      metrics.gauge({
        name: 'penstock_verdicts_awaited',
        help: 'Requests that wait for a verdict.',
        collect() {
          this.set(waits.size)
        },
      })
    },
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
