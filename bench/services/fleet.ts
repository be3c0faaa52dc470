import type { ProcessUse } from '../measure/process-meter.ts'
import { readMetric } from '../support/read-metric.ts'
import type { ScenarioContext } from '../support/scenario.ts'
import { type BenchEdge, type BenchWorkers, QUEUE_LIMITS, startEdge, startWorkers } from './start-product.ts'
import type { BenchClickHouse, BenchRedis } from './start-stores.ts'

/** Number of processes of each kind. */
interface FleetSize {
  readonly edges: number
  readonly workers: number
}

/** Processes whose number can change. */
export interface Fleet {
  /** Starts or stops processes until the fleet has this size. */
  resize(size: FleetSize): Promise<RunningFleet>
}

/** The processes of a fleet after resizing. */
export interface RunningFleet {
  readonly ports: readonly number[]
  readonly pids: Readonly<Record<string, number>>
  /** Returns the inserts that the workers have made since they started, and the number of their rows. */
  inserts(): Promise<{ count: number; rows: number }>
  /** Number of processes that this resizing started. Their code is not compiled yet. */
  readonly started: number
}

/** Creates a fleet of product processes on the same stores, like replicas behind a load balancer. */
export function createFleet(context: ScenarioContext, redis: BenchRedis, clickhouse: BenchClickHouse): Fleet {
  const edges: BenchEdge[] = []
  const workers: BenchWorkers[] = []

  return {
    async resize(size) {
      const started = Math.max(0, size.edges - edges.length) + Math.max(0, size.workers - workers.length)
      while (edges.length > size.edges) await edges.pop()?.stop()
      while (workers.length > size.workers) await workers.pop()?.stop()
      const settings = QUEUE_LIMITS
      edges.push(...(await startAll(size.edges - edges.length, () => startEdge(context, redis, settings))))
      workers.push(
        ...(await startAll(size.workers - workers.length, () => startWorkers(context, redis, clickhouse, ['traces']))),
      )
      return {
        started,
        inserts: () => insertsOf(workers),
        ports: edges.map(edge => edge.port),
        pids: {
          ...pidsOf('edge', edges),
          ...pidsOf('worker', workers),
          Redis: redis.pid,
          ClickHouse: clickhouse.pid,
        },
      }
    },
  }
}

/** Starts processes at once. Eight would take twice as long one after another. */
function startAll<T>(count: number, start: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: Math.max(0, count) }, start))
}

async function insertsOf(workers: readonly BenchWorkers[]): Promise<{ count: number; rows: number }> {
  const sum = async (metric: string) => {
    const values = await Promise.all(workers.map(({ adminUrl }) => readMetric(adminUrl, metric, 'queue="traces"')))
    return values.reduce((total, value) => total + value, 0)
  }
  return { count: await sum('penstock_batch_rows_count'), rows: await sum('penstock_batch_rows_sum') }
}

const pidsOf = (kind: string, processes: readonly { readonly pid: number }[]) =>
  Object.fromEntries(processes.map(({ pid }, i) => [`${kind} ${i + 1}`, pid]))

/** Combines processes of a kind: the sum of their CPU time, and the memory of the largest. */
export function useByKind(use: Readonly<Record<string, ProcessUse>>): Record<string, ProcessUse> {
  const kinds: Record<string, ProcessUse> = {}
  for (const [name, { cpuSeconds, peakMemoryBytes }] of Object.entries(use)) {
    const kind = name.replace(/ \d+$/, '')
    const known = kinds[kind] ?? { cpuSeconds: 0, peakMemoryBytes: 0 }
    kinds[kind] = {
      cpuSeconds: known.cpuSeconds + cpuSeconds,
      peakMemoryBytes: Math.max(known.peakMemoryBytes, peakMemoryBytes),
    }
  }
  return kinds
}
