import type { Metrics } from '../../shared/runtime/metrics.ts'
import type { DeletedKind } from './delete-objects.ts'
import { type ElectedTask, TASKS } from './elected-task.ts'

/** The metrics of what workers delete on purpose. */
export interface UpkeepMetrics {
  /** Shows when a task was last done, in Unix ms. */
  observeDone(task: ElectedTask['name'], atMs: number): void
  observeObjects(kind: DeletedKind, objects: number): void
  observeRows(reason: 'expired', table: string, rows: number): void
  observeErasures(inProgress: number): void
}

/** Tasks that run only where keys of deliveries are set: one that never runs is not old. */
const ONLY_WITH_KEYS: readonly string[] = ['alerts', 'measures', 'reseal']

/** Creates the metrics of the upkeep. Labels have the names of tasks, tables and prefixes. */
export function createUpkeepMetrics(metrics: Metrics): UpkeepMetrics {
  const done = metrics.gauge({
    name: 'penstock_upkeep_last_success_timestamp_seconds',
    help: 'When a task was last done without a fault; 0 if never, as far as this process knows. The newest of all processes counts.',
    labelNames: ['task'],
  })
  for (const task of TASKS.filter(task => !ONLY_WITH_KEYS.includes(task))) done.set({ task }, 0)
  const objects = metrics.counter({
    name: 'penstock_deleted_objects_total',
    help: 'Objects that are deleted because of a retention or an erasure, or because nothing uses them, by prefix.',
    labelNames: ['prefix'],
  })
  const rows = metrics.counter({
    name: 'penstock_deleted_rows_total',
    help: 'Rows that are deleted because they are past the retention of their workspace, by table.',
    labelNames: ['reason', 'table'],
  })
  const erasures = metrics.gauge({
    name: 'penstock_erasures_in_progress',
    help: 'Erasures that are not done, as the process that works on them has last seen.',
  })
  return {
    observeDone: (task, atMs) => done.set({ task }, atMs / 1_000),
    observeObjects: (prefix, count) => objects.inc({ prefix }, count),
    observeRows: (reason, table, count) => rows.inc({ reason, table }, count),
    observeErasures: inProgress => erasures.set(inProgress),
  }
}
