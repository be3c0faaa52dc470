import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import { tracesPlan } from '../measure/measure-stored.ts'
import type { ScenarioRun } from '../support/scenario.ts'
import { poolsOfSignal, QUEUE_LIMITS, startEdge, startWorkers } from './start-product.ts'
import { type BenchClickHouse, type BenchRedis, startBenchClickHouse, startBenchRedis } from './start-stores.ts'

/** Stores and load generator of a scenario. */
export interface Stage {
  readonly context: ScenarioRun
  readonly redis: BenchRedis
  readonly clickhouse: BenchClickHouse
  readonly generator: LoadGenerator
  /** Versions of the stores. */
  readonly facts: Readonly<Record<string, string>>
}

/** Starts empty stores and a load generator. */
export async function startStage(context: ScenarioRun, options: { maxMemory?: string } = {}): Promise<Stage> {
  const redis = await startBenchRedis(context, { ownRewrites: true, ...options })
  const clickhouse = await startBenchClickHouse(context)
  const generator = await startGenerator()
  context.onEnd(() => generator.stop())
  const facts = { Redis: redis.version, ClickHouse: clickhouse.version }
  return { context, redis, clickhouse, generator, facts }
}

/** Starts an edge and a worker. Returns the plan of a usual load of traces, without its mode and duration. */
export async function startInstallation(
  { context, redis, clickhouse }: Stage,
  { queues = poolsOfSignal('traces'), edgeSettings = QUEUE_LIMITS, workerSettings = {} }: InstallationOptions = {},
) {
  const edge = await startEdge(context, redis, edgeSettings)
  const worker = await startWorkers(context, redis, clickhouse, queues, workerSettings)
  const pids = { edge: edge.pid, worker: worker.pid, Redis: redis.pid, ClickHouse: clickhouse.pid }
  return { edge, pids, plan: tracesPlan(edge.port, edge.publicKey) }
}

export interface InstallationOptions {
  readonly queues?: readonly string[]
  readonly edgeSettings?: Readonly<Record<string, string>>
  readonly workerSettings?: Readonly<Record<string, string>>
}
