import { ADMITTED_QUEUES, type AdmittedQueue, type QueueName } from '../schemas/queues/names.ts'
import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/runtime/metrics.ts'
import type { HistogramSeries } from '../shared/runtime/series-histogram.ts'
import type { Admission } from './admission/admission.ts'
import { REFUSAL_REASONS, type RefusalReason } from './admission/queue-shares.ts'
import type { MetadataFault } from './admission/replay-metadata.ts'
import { KEY_LIMITS, type KeyLimit } from './auth/key-limits.ts'
import type { CompletionOutcome } from './releases/accept-completion.ts'
import type { ClaimOutcome } from './releases/claim-part.ts'
import type { VerdictWaits } from './releases/verdict-waits.ts'

/** Metrics of the edge, besides those of every process. */
export interface IngestMetrics {
  /** Observes a confirmed commit. */
  observeCommit(queue: QueueName, frames: number, bytes: number, durationMs: number): void
  /** Counts a request that got a 503 because Redis did not confirm its commit. */
  countCommitFailure(queue: QueueName): void
  /** Counts a request that got INGEST_BACKPRESSURE because its surface is over its share, or nothing is left. */
  countRefusal(queue: AdmittedQueue, reason: RefusalReason): void
  /** Counts a request that is refused for a limit of its key. */
  countKeyRefusal(limit: KeyLimit): void
  /** Counts a replay chunk without usable metadata, which is acknowledged and not kept. */
  countIgnoredReplay(reason: MetadataFault): void
  /** Counts a part of a source map by the outcome of its claim. */
  countPart(outcome: ClaimOutcome): void
  /** Counts a completion. */
  countCompletion(outcome: CompletionOutcome): void
  /** Observes the end of a wait for a verdict. */
  observeVerdict(found: boolean, waitedMs: number): void
  /** Shows the number of waits for verdicts. */
  watchVerdicts(waits: Pick<VerdictWaits, 'size'>): void
  /** Shows the backlogs of these queues. */
  watchBacklog(admission: Pick<Admission, 'sharesOf'>, queues: readonly AdmittedQueue[]): void
}

/** Creates the metrics of the edge. */
export function createIngestMetrics(metrics: Metrics): IngestMetrics {
  const commitFailures = metrics.counter({
    name: 'penstock_commit_failures_total',
    help: 'Requests refused with 503 because Redis did not confirm their commit. The log has the cause.',
    labelNames: ['queue'],
  })
  const refusals = metrics.counter({
    name: 'penstock_refused_requests_total',
    help: 'Requests refused with 429. Reason share: of the surface; full: the queue; memory: Redis; dead_letters, large: of the surface.',
    labelNames: ['queue', 'reason'],
  })
  const keyRefusals = metrics.counter({
    name: 'penstock_key_refusals_total',
    help: 'Requests refused for a limit of their key: a quota, the allowed origins, or (unseenKeys) the bound of lookups.',
    labelNames: ['limit'],
  })
  const ignoredReplay = metrics.counter({
    name: 'penstock_ignored_replay_chunks_total',
    help: 'Replay chunks without usable metadata. They are acknowledged with an empty key and not kept.',
    labelNames: ['reason'],
  })
  const parts = metrics.counter({
    name: 'penstock_source_map_parts_total',
    help: 'Parts of source maps by the outcome of their claims.',
    labelNames: ['outcome'],
  })
  const completions = metrics.counter({
    name: 'penstock_completions_total',
    help: 'Completions of source maps: accepted, or repeated while pending or once done.',
    labelNames: ['outcome'],
  })
  const verdictSeconds = metrics.histogram({
    name: 'penstock_verdict_wait_seconds',
    help: "How long requests waited for a worker's verdict. Outcome not_found: until the deadline.",
    labelNames: ['outcome'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  // A series that begins with its first event hides that event from rate() and increase().
  for (const queue of ADMITTED_QUEUES) {
    commitFailures.inc({ queue }, 0)
    for (const reason of REFUSAL_REASONS) refusals.inc({ queue, reason }, 0)
  }
  for (const limit of KEY_LIMITS) keyRefusals.inc({ limit }, 0)
  return {
    observeCommit: createCommitObserver(metrics),
    countCommitFailure: queue => commitFailures.inc({ queue }),
    countRefusal: (queue, reason) => refusals.inc({ queue, reason }),
    countKeyRefusal: limit => keyRefusals.inc({ limit }),
    countIgnoredReplay: reason => ignoredReplay.inc({ reason }),
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
    watchBacklog(admission, queues) {
      metrics.gauge({
        name: 'penstock_queue_payloads',
        help: 'Requests accepted and not yet stored.',
        labelNames: ['queue'],
        collect() {
          for (const queue of queues) this.set({ queue }, admission.sharesOf(queue).backlog.payloads)
        },
      })
      metrics.gauge({
        name: 'penstock_queue_cost_bytes',
        help: 'Estimated work of the requests accepted and not yet stored, in decoded bytes. The limit is QUEUE_MAX_COST.',
        labelNames: ['queue'],
        collect() {
          for (const queue of queues) this.set({ queue }, admission.sharesOf(queue).backlog.cost)
        },
      })
      metrics.gauge({
        name: 'penstock_queue_bytes',
        help: 'Bytes of the requests accepted and not yet stored, with their framing.',
        labelNames: ['queue'],
        collect() {
          for (const queue of queues) this.set({ queue }, admission.sharesOf(queue).backlog.bytes)
        },
      })
    },
  }
}

/** The confirmed commits of a queue. */
interface CommitCounts {
  frames: number
  bytes: number
  readonly commitFrames: HistogramSeries
  readonly commitSeconds: HistogramSeries
}

/** Returns the observer of confirmed commits, whose counts only a reader of the metrics gives their names. */
function createCommitObserver(metrics: Metrics): IngestMetrics['observeCommit'] {
  const counts = new Map<QueueName, CommitCounts>()
  const counter = (name: string, help: string, read: (of: CommitCounts) => number) =>
    metrics.counter({
      name,
      help,
      labelNames: ['queue'],
      collect() {
        this.reset()
        for (const [queue, of] of counts) this.inc({ queue }, read(of))
      },
    })
  counter('penstock_accepted_payloads_total', 'Requests on disk in Redis.', of => of.frames)
  const bytesHelp = 'Bytes of the requests on disk in Redis, with their framing.'
  counter('penstock_accepted_bytes_total', bytesHelp, of => of.bytes)
  const commitFrames = metrics.seriesHistogram({
    name: 'penstock_commit_frames',
    help: 'Requests per commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  })
  const commitSeconds = metrics.seriesHistogram({
    name: 'penstock_commit_seconds',
    help: 'Time from the write of a commit to its confirmation.',
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  const begin = (queue: QueueName): CommitCounts => {
    const labels = { queue }
    const series = { commitFrames: commitFrames.series(labels), commitSeconds: commitSeconds.series(labels) }
    const begun = { frames: 0, bytes: 0, ...series }
    counts.set(queue, begun)
    return begun
  }
  return (queue, frames, bytes, durationMs) => {
    const of = counts.get(queue) ?? begin(queue)
    of.frames += frames
    of.bytes += bytes
    of.commitFrames.observe(frames)
    of.commitSeconds.observe(durationMs / 1_000)
  }
}
