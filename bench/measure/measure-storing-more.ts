import { type LoadGenerator, startGenerator } from '../load/start-generator.ts'
import { type BenchEdge, QUEUE_BYTES, startEdge, startWorkers } from '../services/start-product.ts'
import type { BenchClickHouse, BenchRedis } from '../services/start-stores.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { settleMerges } from './clickhouse-work.ts'
import { acceptedSpans, SPANS, tracesPlan, untilStored } from './measure-stored.ts'
import { meterProcesses } from './process-meter.ts'

const CONNECTIONS = 64
/** What came on top of what was stored. */
export interface StoredMore {
  readonly spans: number
  /** From the first request until the last span could be queried. */
  readonly seconds: number
  /** CPU seconds by process, merges of the new spans included. */
  readonly cpuSeconds: Readonly<Record<string, number>>
}

export interface SpanSource {
  /** Sends for so long to the product's edge, and waits until all of it is stored and merged. */
  storeMore(durationMs: number): Promise<StoredMore>
}

/** Edge, worker and load generator, for stores that other things are measured on as well. */
export async function startSpanSource(
  context: ScenarioContext,
  redis: BenchRedis,
  clickhouse: BenchClickHouse,
): Promise<SpanSource> {
  const generator = await startGenerator()
  context.onEnd(() => generator.stop())
  const edge = await startEdge(context, redis, { QUEUE_MAX_BYTES: String(QUEUE_BYTES) })
  const workers = await startWorkers(context, redis, clickhouse, ['spans'])
  const pids = { edge: edge.pid, worker: workers.pid, Redis: redis.pid, ClickHouse: clickhouse.pid }
  return {
    async storeMore(durationMs) {
      const before = await countSpans(clickhouse)
      const meter = meterProcesses(pids)
      const startedAt = performance.now()
      meter.begin()
      const spans = await send(generator, edge, durationMs)
      await untilStored(clickhouse.client, before + spans)
      const seconds = (performance.now() - startedAt) / 1_000
      await settleMerges(clickhouse.client)
      const use = Object.entries(meter.end())
      return { spans, seconds, cpuSeconds: Object.fromEntries(use.map(([name, { cpuSeconds }]) => [name, cpuSeconds])) }
    },
  }
}

/** Returns how many spans were accepted. */
async function send(generator: LoadGenerator, edge: BenchEdge, durationMs: number): Promise<number> {
  const load = await generator.run({
    ...tracesPlan(edge.port, [edge.publicKey]),
    connections: CONNECTIONS,
    payload: { spans: SPANS, pool: 4 * CONNECTIONS, freshIds: true },
    mode: { kind: 'closed' },
    warmUpMs: 0,
    durationMs,
  })
  return acceptedSpans(load)
}

async function countSpans({ client }: BenchClickHouse): Promise<number> {
  const result = await client.query({ query: 'SELECT count() AS n FROM spans', format: 'JSONEachRow' })
  const [row] = await result.json<{ n: string }>()
  return Number(row?.n)
}
