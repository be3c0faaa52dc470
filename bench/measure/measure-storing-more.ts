import type { LoadMode } from '../load/plan.ts'
import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import { type BenchEdge, QUEUE_LIMITS, startEdge, startWorkers } from '../services/start-product.ts'
import type { BenchClickHouse, BenchRedis } from '../services/start-stores.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { settleMerges } from './clickhouse-work.ts'
import { acceptedSpans, countSpans, SPANS, tracesPlan, untilStored } from './measure-stored.ts'
import { meterProcesses } from './process-meter.ts'

const CONNECTIONS = 64
/** Result of storing more spans. */
export interface StoredMore {
  readonly spans: number
  /** Time from the first request until the last span could be queried. */
  readonly seconds: number
  /** CPU seconds by process, including merges of the new spans. */
  readonly cpuSeconds: Readonly<Record<string, number>>
}

/** Sends spans to the product. */
export interface SpanSource {
  /** Sends spans for this time, and waits until all of them are stored and merged. */
  storeMore(durationMs: number): Promise<StoredMore>
  /** Sends this many spans a second for this time, and waits until all of them are stored. */
  storeAtRate(spansPerSecond: number, durationMs: number): Promise<void>
}

/** Starts an edge, a worker and a load generator on existing stores. */
export async function startSpanSource(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
): Promise<SpanSource> {
  const generator = await startGenerator()
  context.onEnd(() => generator.stop())
  const edge = await startEdge(context, redis, QUEUE_LIMITS)
  const workers = await startWorkers(context, redis, clickhouse, ['traces'])
  const pids = { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid }
  return {
    async storeMore(durationMs) {
      const before = await countSpans(clickhouse.client)
      const meter = meterProcesses(pids)
      const startedAt = performance.now()
      meter.begin()
      const spans = await send(generator, edge, { kind: 'closed' }, durationMs)
      await untilStored(clickhouse.client, before + spans)
      const seconds = (performance.now() - startedAt) / 1_000
      await settleMerges(clickhouse.client)
      const use = Object.entries(meter.end())
      return { spans, seconds, cpuSeconds: Object.fromEntries(use.map(([name, { cpuSeconds }]) => [name, cpuSeconds])) }
    },
    async storeAtRate(spansPerSecond, durationMs) {
      const before = await countSpans(clickhouse.client)
      const mode = { kind: 'open', requestsPerSecond: spansPerSecond / SPANS } as const
      const spans = await send(generator, edge, mode, durationMs)
      await untilStored(clickhouse.client, before + spans)
    },
  }
}

/** Sends spans and returns the number accepted. */
async function send(generator: LoadGenerator, edge: BenchEdge, mode: LoadMode, durationMs: number): Promise<number> {
  const load = await generator.run({
    ...tracesPlan(edge.port, [edge.publicKey]),
    connections: CONNECTIONS,
    payload: { spans: SPANS, pool: 4 * CONNECTIONS, freshIds: true },
    mode,
    warmUpMs: 0,
    durationMs,
  })
  return acceptedSpans(load)
}
