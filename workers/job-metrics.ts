import type { QueueName } from '../schemas/queues/names.ts'
import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/runtime/metrics.ts'
import type { ReplayJobStats } from './replay/store-replay.ts'
import type { Batch } from './sink/batch.ts'
import type { CompletionStats } from './source-maps/store-completions.ts'
import type { SourceMapStats } from './source-maps/store-source-maps.ts'
import type { SymbolicationStats } from './symbolication/symbolicate-job.ts'

/** Metrics of the jobs of each queue. */
export interface JobMetrics {
  observeBatch(queue: QueueName, batch: Batch, insertMs: number): void
  /** Counts an insert that ClickHouse has confirmed. */
  observeInsert(table: string): void
  /** Returns an observer of how long the requests of one job took to decode. */
  decodeObserver(queue: QueueName): (durationMs: number) => void
  observeReplayJob(stats: ReplayJobStats): void
  observeSourceMap(stats: SourceMapStats): void
  observeCompletion(stats: CompletionStats): void
  observeSymbolicationJob(stats: SymbolicationStats): void
}

/** Counts the finished requests of a queue. */
type CountFinished = (queue: QueueName, stored: number, deadLettered: number) => void

/** Creates the metrics of the jobs of each queue. */
export function createJobMetrics(metrics: Metrics): JobMetrics {
  const payloads = metrics.counter({
    name: 'penstock_payloads_total',
    help: 'Finished requests, by outcome.',
    labelNames: ['queue', 'outcome'],
  })
  const finished: CountFinished = (queue, stored, deadLettered) => {
    payloads.inc({ queue, outcome: 'stored' }, stored)
    if (deadLettered > 0) payloads.inc({ queue, outcome: 'dead_lettered' }, deadLettered)
  }
  return {
    ...createRowsMetrics(metrics, finished),
    ...createReplayMetrics(metrics, finished),
    ...createSourceMapMetrics(metrics, finished),
    ...createSymbolicationMetrics(metrics, finished),
  }
}

function createRowsMetrics(
  metrics: Metrics,
  finished: CountFinished,
): Pick<JobMetrics, 'observeBatch' | 'observeInsert' | 'decodeObserver'> {
  const rows = metrics.counter({
    name: 'penstock_rows_total',
    help: 'Records stored.',
    labelNames: ['queue'],
  })
  const rejected = metrics.counter({
    name: 'penstock_rejected_records_total',
    help: 'Records left out of stored payloads, by reason.',
    labelNames: ['queue', 'reason'],
  })
  const insertSeconds = metrics.histogram({
    name: 'penstock_batch_insert_seconds',
    help: 'Time from naming a batch to its confirmation by every table.',
    labelNames: ['queue'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  const inserts = metrics.counter({
    name: 'penstock_clickhouse_inserts_total',
    help: 'Confirmed inserts, by table. Its increase in 24 hours must be below the deduplication window of the table.',
    labelNames: ['table'],
  })
  const batchRows = metrics.histogram({
    name: 'penstock_batch_rows',
    help: 'Records per batch.',
    labelNames: ['queue'],
    buckets: [1, 10, 100, 1_000, 10_000, 50_000, 100_000, 200_000],
  })
  const decodeSeconds = metrics.histogram({
    name: 'penstock_decode_seconds',
    help: 'Time to decode the requests of one job into rows, with decompression.',
    labelNames: ['queue'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  return {
    observeBatch(queue, { stats }, insertMs) {
      finished(queue, stats.frames - stats.refused, stats.refused)
      rows.inc({ queue }, stats.rows)
      for (const [reason, count] of stats.rejectedRows) rejected.inc({ queue, reason }, count)
      insertSeconds.observe({ queue }, insertMs / 1_000)
      batchRows.observe({ queue }, stats.rows)
    },
    observeInsert: table => inserts.inc({ table }),
    decodeObserver(queue) {
      const seconds = decodeSeconds.labels({ queue })
      return durationMs => seconds.observe(durationMs / 1_000)
    },
  }
}

function createReplayMetrics(metrics: Metrics, finished: CountFinished): Pick<JobMetrics, 'observeReplayJob'> {
  const replayChunks = metrics.counter({
    name: 'penstock_replay_chunks_total',
    help: 'Replay chunks, by outcome: stored, repeated, or the reason why they were dead-lettered.',
    labelNames: ['outcome'],
  })
  const replayBytes = metrics.counter({
    name: 'penstock_replay_stored_bytes_total',
    help: 'Bytes of stored replay chunks, gzipped.',
  })
  return {
    observeReplayJob({ outcomes, storedBytes, deadLettered, frames }) {
      for (const [outcome, count] of outcomes) replayChunks.inc({ outcome }, count)
      replayBytes.inc(storedBytes)
      finished('replay', frames - deadLettered, deadLettered)
    },
  }
}

function createSymbolicationMetrics(
  metrics: Metrics,
  finished: CountFinished,
): Pick<JobMetrics, 'observeSymbolicationJob'> {
  const stackFrames = metrics.counter({
    name: 'penstock_stack_frames_total',
    help: 'Stack frames that a source map could resolve, by whether it was resolved.',
    labelNames: ['outcome'],
  })
  const resolvedAgain = metrics.counter({
    name: 'penstock_findings_resolved_again_total',
    help: 'Findings whose stacks were resolved again because source maps of their release arrived.',
  })
  const postponedStacks = metrics.counter({
    name: 'penstock_symbolication_postponed_total',
    help: 'Requests for symbolication that wait because their workspace has used its time.',
  })
  return {
    observeSymbolicationJob({ requests, frames, resolvedFrames, variantsResolvedAgain, postponed, deadLettered }) {
      stackFrames.inc({ outcome: 'resolved' }, resolvedFrames)
      stackFrames.inc({ outcome: 'unresolved' }, frames - resolvedFrames)
      resolvedAgain.inc(variantsResolvedAgain)
      postponedStacks.inc(postponed)
      finished('symbolication', Math.max(0, requests - deadLettered - postponed), deadLettered)
    },
  }
}

function createSourceMapMetrics(
  metrics: Metrics,
  finished: CountFinished,
): Pick<JobMetrics, 'observeSourceMap' | 'observeCompletion'> {
  const sourceMaps = metrics.counter({
    name: 'penstock_source_map_uploads_total',
    help: 'Parts and whole source maps, by outcome.',
    labelNames: ['kind', 'outcome'],
  })
  const sourceMapBytes = metrics.counter({
    name: 'penstock_source_map_stored_bytes_total',
    help: 'Bytes of source maps written to the object store, by kind of upload.',
    labelNames: ['kind'],
  })
  const completions = metrics.counter({
    name: 'penstock_completions_total',
    help: 'Completions of source-map uploads, by outcome.',
    labelNames: ['outcome'],
  })
  const completionFiles = metrics.counter({
    name: 'penstock_completed_source_maps_total',
    help: 'Source maps named by manifests that became current.',
  })
  const completionSeconds = metrics.histogram({
    name: 'penstock_completion_seconds',
    help: 'Time from the arrival of a completion to its verdict.',
    labelNames: ['outcome'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  return {
    observeSourceMap({ kind, outcome, storedBytes, deadLettered }) {
      sourceMaps.inc({ kind, outcome })
      sourceMapBytes.inc({ kind }, storedBytes)
      finished('source-maps', deadLettered ? 0 : 1, deadLettered ? 1 : 0)
    },
    observeCompletion({ outcome, files, storedBytes, ageMs }) {
      completions.inc({ outcome })
      completionSeconds.observe({ outcome }, ageMs / 1_000)
      finished('completions', 1, 0)
      sourceMapBytes.inc({ kind: 'completion' }, storedBytes)
      if (outcome === 'completed') completionFiles.inc(files)
    },
  }
}
