import { hasQueue, type QueueName } from '../schemas/queues/names.ts'
import { type CacheCounts, watchCaches } from '../shared/runtime/cache-counts.ts'
import type { Metrics } from '../shared/runtime/metrics.ts'
import { createDeliveryMetrics, type DeliveryMetrics } from './delivery-metrics.ts'
import { createJobMetrics, type JobMetrics } from './job-metrics.ts'
import type { QueueBacklog } from './queue/backlog.ts'
import type { Pool } from './queue/pool.ts'
import type { RepeatedFailures } from './queue/repeated-failures.ts'

/** The metrics of the pools. */
export interface WorkerMetrics extends JobMetrics, DeliveryMetrics {
  /** Counts the dead letters of a job. */
  observeLetters(queue: QueueName, kept: number, discarded: number): void
  /** Shows the age of the newest backup of the directory: its time in Unix ms, or undefined until it was looked up. */
  watchBackups(newestAtMs: () => number | undefined): void
  /** Counts a backup of the directory that failed. */
  backupFailed(): void
  watchPool(pool: Pool): void
  /** Shows the lookups of a cache, and returns it. */
  watchCache<C extends CacheCounts>(name: 'manifests' | 'source_maps', cache: C): C
  /** Shows the backlogs of the queues that only workers write to. */
  watchBacklogs(read: () => Promise<readonly QueueBacklog[]>): void
  /** Shows the failures of a pool, and returns them. */
  watchFailures(queue: QueueName, failures: RepeatedFailures): RepeatedFailures
}

/** Creates the metrics of the workers. The number of series is bounded, because labels of reasons are closed unions. */
export function createWorkerMetrics(metrics: Metrics): WorkerMetrics {
  const caches: Record<string, CacheCounts> = {}
  watchCaches(metrics, caches)
  return {
    ...createJobMetrics(metrics),
    ...createBackupMetrics(metrics),
    ...createDeliveryMetrics(metrics),
    ...createPoolMetrics(metrics),
    watchCache(name, cache) {
      caches[name] = cache
      return cache
    },
    watchBacklogs: read => watchBacklogs(metrics, read),
    watchFailures: failuresWatcher(metrics),
  }
}

function createBackupMetrics(metrics: Metrics): Pick<WorkerMetrics, 'watchBackups' | 'backupFailed'> {
  const backupFailures = metrics.counter({
    name: 'penstock_directory_backup_failures_total',
    help: 'Backups of the directory that failed. They are tried again after a minute.',
  })
  let read: (() => number | undefined) | undefined
  metrics.gauge({
    name: 'penstock_directory_backup_age_seconds',
    help: 'Age of the newest backup of the directory; infinite if there is none.',
    collect() {
      const atMs = read?.()
      // Without this, a gauge that was never set is 0.
      if (atMs === undefined) this.remove()
      else this.set((Date.now() - atMs) / 1_000)
    },
  })
  return {
    watchBackups(newestAtMs) {
      read = newestAtMs
    },
    backupFailed: () => backupFailures.inc(),
  }
}

function createPoolMetrics(metrics: Metrics): Pick<WorkerMetrics, 'observeLetters' | 'watchPool'> {
  const deadLetters = metrics.counter({
    name: 'penstock_dead_letters_total',
    help: 'Dead letters by the queue that refused them: kept, or discarded over the bound of their surface and day.',
    labelNames: ['queue', 'outcome'],
  })
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
    observeLetters(queue, kept, discarded) {
      if (kept > 0) deadLetters.inc({ queue, outcome: 'kept' }, kept)
      if (discarded > 0) deadLetters.inc({ queue, outcome: 'discarded' }, discarded)
    },
    watchPool(pool) {
      pools.push(pool)
      if (!hasQueue(pool.queue)) return
      // A series that begins with its first event hides that event from rate() and increase().
      for (const outcome of ['kept', 'discarded']) deadLetters.inc({ queue: pool.queue, outcome }, 0)
    },
  }
}

function failuresWatcher(metrics: Metrics): WorkerMetrics['watchFailures'] {
  const watched = new Map<QueueName, RepeatedFailures>()
  metrics.gauge({
    name: 'penstock_failing_attempts',
    help: 'Attempts of the insert or upload that its store has refused most often in a row, and that still fails.',
    labelNames: ['queue'],
    collect() {
      for (const [queue, failures] of watched) this.set({ queue }, failures.mostAttempts)
    },
  })
  return (queue, failures) => {
    watched.set(queue, failures)
    return failures
  }
}

function watchBacklogs(metrics: Metrics, read: () => Promise<readonly QueueBacklog[]>): void {
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
}
