import type { QueueName } from '../schemas/queues/names.ts'
import { type CacheCounts, watchCaches } from '../shared/runtime/cache-counts.ts'
import { LATENCY_BUCKETS_SECONDS, type Metrics } from '../shared/runtime/metrics.ts'
import type { QueueBacklog } from './queue/backlog.ts'
import type { Pool } from './queue/pool.ts'
import type { RepeatedFailures } from './queue/repeated-failures.ts'
import type { ReplayJobStats } from './replay/store-replay.ts'
import type { Batch } from './sink/batch.ts'
import type { CompletionStats } from './source-maps/store-completions.ts'
import type { SourceMapStats } from './source-maps/store-source-maps.ts'
import type { SymbolicationStats } from './symbolication/symbolicate-job.ts'

/** The metrics of the pools. */
export interface WorkerMetrics {
  observeBatch(queue: QueueName, batch: Batch, insertMs: number): void
  observeReplayJob(stats: ReplayJobStats): void
  observeSourceMap(stats: SourceMapStats): void
  observeCompletion(stats: CompletionStats): void
  observeSymbolicationJob(stats: SymbolicationStats): void
  /** Counts the dead letters of a job. */
  observeLetters(queue: QueueName, kept: number, discarded: number): void
  /** Shows the age of the newest backup of the directory: its time in Unix ms, or undefined until it was looked up. */
  watchBackups(newestAtMs: () => number | undefined): void
  /** Counts a backup of the directory that failed. */
  backupFailed(): void
  watchPool(pool: Pool): void
  /** Counts an insert that ClickHouse has confirmed. */
  observeInsert(table: string): void
  /** Returns an observer of how long the requests of one job took to decode. */
  decodeObserver(queue: QueueName): (durationMs: number) => void
  /** Shows the lookups of a cache, and returns it. */
  watchCache<C extends CacheCounts>(name: 'manifests' | 'source_maps', cache: C): C
  /** Shows the backlogs of the queues that only workers write to. */
  watchBacklogs(read: () => Promise<readonly QueueBacklog[]>): void
  /** Shows the failures of a pool, and returns them. */
  watchFailures(queue: QueueName, failures: RepeatedFailures): RepeatedFailures
}

/** Creates the metrics of the workers. The number of series is bounded, because labels of reasons are closed unions. */
export function createWorkerMetrics(metrics: Metrics): WorkerMetrics {
  const payloads = metrics.counter({
    name: 'penstock_payloads_total',
    help: 'Finished requests, by outcome.',
    labelNames: ['queue', 'outcome'],
  })
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
  const replayChunks = metrics.counter({
    name: 'penstock_replay_chunks_total',
    help: 'Replay chunks, by outcome: stored, repeated, or the reason why they were dead-lettered.',
    labelNames: ['outcome'],
  })
  const replayBytes = metrics.counter({
    name: 'penstock_replay_stored_bytes_total',
    help: 'Bytes of stored replay chunks, gzipped.',
  })
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
  const backupFailures = metrics.counter({
    name: 'penstock_directory_backup_failures_total',
    help: 'Backups of the directory that failed. They are tried again after a minute.',
  })
  const watched = new Map<QueueName, RepeatedFailures>()
  metrics.gauge({
    name: 'penstock_failing_attempts',
    help: 'Attempts of the insert or upload that its store has refused most often in a row, and that still fails.',
    labelNames: ['queue'],
    collect() {
      for (const [queue, failures] of watched) this.set({ queue }, failures.mostAttempts)
    },
  })
  const deadLetters = metrics.counter({
    name: 'penstock_dead_letters_total',
    help: 'Dead letters by the queue that refused them: kept, or discarded over the bound of their surface and day.',
    labelNames: ['queue', 'outcome'],
  })
  const decodeSeconds = metrics.histogram({
    name: 'penstock_decode_seconds',
    help: 'Time to decode the requests of one job into rows, with decompression.',
    labelNames: ['queue'],
    buckets: LATENCY_BUCKETS_SECONDS,
  })
  const caches: Record<string, CacheCounts> = {}
  watchCaches(metrics, caches)
  const pools: Pool[] = []
  metrics.counter({
    name: 'penstock_job_retries_total',
    help: 'Jobs that failed and are processed again later. The log has the cause.',
    labelNames: ['queue'],
    collect() {
      this.reset()
      for (const pool of pools) this.inc({ queue: pool.queue }, pool.jobRetries)
    },
  })
  metrics.counter({
    name: 'penstock_store_retries_total',
    help: 'Repeated inserts and uploads of jobs in progress, because ClickHouse or the object store failed.',
    labelNames: ['queue'],
    collect() {
      this.reset()
      for (const pool of pools) this.inc({ queue: pool.queue }, pool.storeRetries)
    },
  })
  metrics.gauge({
    name: 'penstock_pool_active_jobs',
    help: 'Jobs in progress in this process.',
    labelNames: ['queue'],
    collect() {
      for (const pool of pools) this.set({ queue: pool.queue }, pool.activeJobs)
    },
  })

  return {
    observeBatch(queue, batch, insertMs) {
      const dead = batch.stats.refused
      payloads.inc({ queue, outcome: 'stored' }, batch.stats.frames - dead)
      if (dead > 0) payloads.inc({ queue, outcome: 'dead_lettered' }, dead)
      rows.inc({ queue }, batch.stats.rows)
      for (const [reason, count] of batch.stats.rejectedRows) rejected.inc({ queue, reason }, count)
      insertSeconds.observe({ queue }, insertMs / 1_000)
      batchRows.observe({ queue }, batch.stats.rows)
    },
    observeReplayJob({ outcomes, storedBytes, deadLettered, frames }) {
      for (const [outcome, count] of outcomes) replayChunks.inc({ outcome }, count)
      replayBytes.inc(storedBytes)
      payloads.inc({ queue: 'replay', outcome: 'stored' }, frames - deadLettered)
      if (deadLettered > 0) payloads.inc({ queue: 'replay', outcome: 'dead_lettered' }, deadLettered)
    },
    observeSymbolicationJob({ requests, frames, resolvedFrames, findingsResolvedAgain, postponed, deadLettered }) {
      stackFrames.inc({ outcome: 'resolved' }, resolvedFrames)
      stackFrames.inc({ outcome: 'unresolved' }, frames - resolvedFrames)
      resolvedAgain.inc(findingsResolvedAgain)
      postponedStacks.inc(postponed)
      payloads.inc({ queue: 'symbolication', outcome: 'stored' }, Math.max(0, requests - deadLettered - postponed))
      if (deadLettered > 0) payloads.inc({ queue: 'symbolication', outcome: 'dead_lettered' }, deadLettered)
    },
    observeSourceMap({ kind, outcome, storedBytes, deadLettered }) {
      sourceMaps.inc({ kind, outcome })
      sourceMapBytes.inc({ kind }, storedBytes)
      payloads.inc({ queue: 'source-maps', outcome: deadLettered ? 'dead_lettered' : 'stored' })
    },
    observeCompletion({ outcome, files, storedBytes, ageMs }) {
      completions.inc({ outcome })
      completionSeconds.observe({ outcome }, ageMs / 1_000)
      payloads.inc({ queue: 'completions', outcome: 'stored' })
      sourceMapBytes.inc({ kind: 'completion' }, storedBytes)
      if (outcome === 'completed') completionFiles.inc(files)
    },
    observeLetters(queue, kept, discarded) {
      if (kept > 0) deadLetters.inc({ queue, outcome: 'kept' }, kept)
      if (discarded > 0) deadLetters.inc({ queue, outcome: 'discarded' }, discarded)
    },
    observeInsert: table => inserts.inc({ table }),
    watchPool(pool) {
      pools.push(pool)
      // A series that begins with its first event hides that event from rate() and increase().
      for (const outcome of ['kept', 'discarded']) deadLetters.inc({ queue: pool.queue, outcome }, 0)
    },
    watchBackups(newestAtMs) {
      metrics.gauge({
        name: 'penstock_directory_backup_age_seconds',
        help: 'Age of the newest backup of the directory; infinite if there is none.',
        collect() {
          const atMs = newestAtMs()
          // Without this, a gauge that was never set is 0.
          if (atMs === undefined) this.remove()
          else this.set((Date.now() - atMs) / 1_000)
        },
      })
    },
    backupFailed: () => backupFailures.inc(),
    decodeObserver(queue) {
      const seconds = decodeSeconds.labels({ queue })
      return durationMs => seconds.observe(durationMs / 1_000)
    },
    watchCache(name, cache) {
      caches[name] = cache
      return cache
    },
    watchBacklogs(read) {
      const labelNames = ['queue'] as const
      metrics.gauge({
        name: 'penstock_queue_payloads',
        help: 'Requests accepted and not yet stored.',
        labelNames,
        async collect() {
          for (const { queue, payloads: waiting } of await read()) this.set({ queue }, waiting)
        },
      })
      metrics.gauge({
        name: 'penstock_queue_bytes',
        help: 'Bytes of the requests accepted and not yet stored, with their framing.',
        labelNames,
        async collect() {
          for (const { queue, bytes } of await read()) this.set({ queue }, bytes)
        },
      })
    },
    watchFailures(queue, failures) {
      watched.set(queue, failures)
      return failures
    },
  }
}
