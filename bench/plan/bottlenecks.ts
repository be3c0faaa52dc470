import type { Inputs } from './inputs.ts'
import type { Plan } from './make-plan.ts'
import { REDIS_MEMORY_SHARE, redisNodeBytes, WINDOW_MEMORY_SHARE } from './plan-stores.ts'

/** A resource of a plan with the load that it allows. */
export interface Resource {
  readonly name: string
  /** Spans a second at the peak with which the resource is in use for the share that is the goal. */
  readonly rate: number
  /** What to add. */
  readonly remedy: string
}

/** Returns the resources of a plan, the scarcest first. */
export function bottlenecksOf(plan: Plan, inputs: Inputs): Resource[] {
  const { cpu, bytes, peakRate, redis, clickhouse } = plan
  const goal = inputs.utilisation
  const gbitOf = (nodes: number) => (nodes * inputs.network * 1e9 * goal) / 8
  const { shards, coresOfNode, memoryOfNode, windowMemory, diskNeeded } = clickhouse
  const per = (capacity: number, demand: number) => (demand > 0 ? capacity / demand : Number.POSITIVE_INFINITY)
  const resources: Resource[] = [
    { name: 'CPU of the edges', rate: per(plan.edges * plan.edgeCores * goal, cpu.edge), remedy: 'add edges' },
    {
      name: 'CPU of the workers',
      rate: per(plan.workers * plan.workerCores * goal, cpu.worker),
      remedy: 'add workers',
    },
    {
      name: 'CPU of Redis',
      rate: per(redis.nodes * Math.min(redis.coresOfNode, 1) * goal, cpu.redis),
      remedy: 'add Redis nodes, and partitions: a partition has one core at most',
    },
    {
      name: 'memory of Redis for the backlog',
      rate: peakRate * per(redis.nodes * redis.memoryOfNode, redis.memoryNeeded),
      remedy: `add Redis nodes or memory, or bridge a shorter outage: ${REDIS_MEMORY_SHARE * 100} % of maxmemory is used`,
    },
    {
      name: 'network of Redis',
      rate: per(gbitOf(redis.nodes), redisNodeBytes(bytes, inputs)),
      remedy: 'add Redis nodes',
    },
    { name: 'CPU of ClickHouse', rate: per(shards * coresOfNode * goal, cpu.clickhouse), remedy: 'add shards' },
    {
      name: 'disk of ClickHouse',
      rate: peakRate * per(shards * inputs['clickhouse-disk'], diskNeeded),
      remedy: 'add shards or disk, or keep data for a shorter time',
    },
    {
      name: 'network of ClickHouse',
      rate: per(gbitOf(shards), bytes.clickhouseReceived),
      remedy: 'add shards',
    },
    {
      name: 'deduplication windows (memory of each ClickHouse node)',
      rate: peakRate * per(memoryOfNode * WINDOW_MEMORY_SHARE, windowMemory),
      remedy: 'larger nodes or larger batches (BATCH_MAX_ROWS, BATCH_MAX_BYTES); more shards do not help',
    },
  ]
  return resources.toSorted((a, b) => a.rate - b.rate)
}
