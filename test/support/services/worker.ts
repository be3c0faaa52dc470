import { type Logger, pino } from 'pino'
import type { QueueName } from '../../../schemas/queues/names.ts'
import type { InstallationWatch } from '../../../shared/installation/installation-watch.ts'
import { parseConfig } from '../../../shared/runtime/config.ts'
import { createLifecycle } from '../../../shared/runtime/lifecycle.ts'
import { createMetrics } from '../../../shared/runtime/metrics.ts'
import { workersConfigSchema } from '../../../workers/config.ts'
import { connectWorkers } from '../../../workers/connect.ts'
import { createWorkerMetrics } from '../../../workers/metrics.ts'
import { POOLS } from '../../../workers/pools/table.ts'

/** A process of the workers that runs in this one, with its checks of the stores. */
export interface TestWorker {
  /** Returns true, or the reason that /readyz names. */
  isReady(): true | string
  readonly installation: InstallationWatch
  /** Returns the text of /metrics. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

const DEADLINE_MS = 10_000

/** Starts pools as `workers/main.ts` does, with the wiring of that process. `startPools` checks no stores. */
export function startWorker(
  queues: readonly QueueName[],
  settings: Record<string, string>,
  logger: Logger = pino({ level: 'silent' }),
): TestWorker {
  const lifecycle = createLifecycle(logger, DEADLINE_MS)
  const processMetrics = createMetrics('test')
  const metrics = createWorkerMetrics(processMetrics)
  const stopping = new AbortController()
  const wiring = { queues, logger, lifecycle, metrics, processMetrics }
  const { deps, isReady, installation } = connectWorkers(
    parseConfig(workersConfigSchema, settings),
    wiring,
    stopping.signal,
  )
  for (const queue of queues) {
    const pool = POOLS[queue](deps)
    lifecycle.onStop(`pool ${queue}`, () => pool.close())
  }
  // As in main.ts: an insert may still succeed.
  lifecycle.onStop('retries', () => void setTimeout(() => stopping.abort(), DEADLINE_MS / 4).unref())
  return {
    isReady,
    installation,
    metrics: () => processMetrics.registry.metrics(),
    stop: () => lifecycle.stop('test'),
  }
}
