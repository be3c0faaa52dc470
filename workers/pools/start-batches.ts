import type { Lane } from '../../shared/queue/queue.ts'
import type { RedisQueue } from '../../shared/queue/queues.ts'
import type { PoolsDeps } from '../deps.ts'
import { RedisPayloadStore } from '../queue/payloads/payload-store.ts'
import { SurfacePrices } from '../queue/payloads/surface-prices.ts'
import { type Pool, type PoolOptions, startPool } from '../queue/pool.ts'
import { type CondemnAfter, RepeatedFailures } from '../queue/repeated-failures.ts'
import type { BatchSource } from '../sink/batch.ts'
import { BatchPool, type BatchPoolOptions } from '../sink/batch-pool.ts'
import { LaneResources } from '../sink/lane-resources.ts'
import type { InsertPace } from '../sink/pace/insert-pace.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { BatchStorer, type BatchStorerDeps } from '../sink/store-batch.ts'

/** What a pool of rows consumes, what it makes of it, and where the rows go. */
export interface RowsPlan
  extends Pick<BatchSource, 'queue' | 'kind' | 'activeShards'>,
    Pick<BatchStorerDeps, 'insert' | 'burnToken'> {
  readonly lanes: readonly Lane[]
  readonly createRows: () => RowBatch
  /** Returns the times at which a lane inserts batches that are not full. */
  readonly paceOf: (lane: Lane) => Pick<InsertPace, 'next'>
  /** When a batch that ClickHouse refuses again and again is at fault itself. */
  readonly condemnAfter: CondemnAfter
  readonly onJobDecoded: (durationMs: number) => void
  readonly options: BatchPoolOptions
}

/** Reports attempts and successes of inserts. */
interface Progress {
  attempted(attempt: number): void
  progress(): void
}

type BatchesDeps = Pick<
  PoolsDeps,
  | 'accessTo'
  | 'columnMemory'
  | 'expressFirst'
  | 'letterQuota'
  | 'logger'
  | 'pageClaims'
  | 'metrics'
  | 'redis'
  | 'stopping'
>

/** Batches of one queue. */
interface QueueBatches {
  readonly store: RedisPayloadStore
  readonly storer: BatchStorer
  readonly lanes: ReadonlyMap<Lane, BatchPool>
}

/** The batches of the queues of a name. */
interface Batches {
  of(queue: RedisQueue): QueueBatches
  /** Inserts every batch at once from now on, because the pool takes no more jobs. */
  close(): void
}

/** Creates the batches of a queue. */
export function createBatches(plan: RowsPlan, deps: BatchesDeps, progress: Progress): Batches {
  const { queue, kind, activeShards, insert, burnToken, condemnAfter, createRows, options } = plan
  const { logger, metrics, letterQuota, pageClaims, columnMemory, expressFirst, stopping } = deps
  const prices = new SurfacePrices(queue, deps)
  const source: BatchSource = {
    ...{ queue, kind, letterQuota, pageClaims, activeShards },
    onDecoded: (frame, decodedBytes, decodeMs) => prices.observe(frame, decodedBytes, decodeMs),
  }
  const inserts: Omit<BatchStorerDeps, 'store' | 'addJobs'> = {
    ...source,
    ...{ insert, burnToken, condemnAfter, logger, stopping },
    failures: metrics.watchFailures(queue, new RepeatedFailures()),
    onStored: (batch, insertMs) => metrics.observeBatch(queue, batch, insertMs),
    onAttempt: attempt => progress.attempted(attempt),
    onSuccess: () => progress.progress(),
  }
  // Each lane has its own batches and insert slots, so that an express job waits for no insert of the bulk lane.
  const lanes = plan.lanes.map(lane => {
    const memory = { name: `${queue} ${lane}`, memory: columnMemory, createRows }
    // The lanes of equal queues have one pace, because ClickHouse recognizes repeated inserts by their number.
    return { lane, resources: new LaneResources(memory, options), pace: plan.paceOf(lane) }
  })
  const opened: BatchPool[] = []
  // A batch has jobs of one queue, because the script that names it uses keys of one.
  const known = new Map<RedisQueue, QueueBatches>()
  const open = (from: RedisQueue): QueueBatches => {
    const { payloads, confirmed, addJobs } = deps.accessTo(from)
    const store = new RedisPayloadStore(from, payloads, confirmed)
    const storer = new BatchStorer({ ...inserts, store, addJobs })
    const shared = { ...source, store, storer, createRows, logger, memory: columnMemory, expressFirst }
    const pools = lanes.map(own => new BatchPool({ ...shared, ...own, onJobDecoded: plan.onJobDecoded }, options))
    opened.push(...pools)
    return { store, storer, lanes: new Map(lanes.map(({ lane }, i) => [lane, pools[i] as BatchPool])) }
  }
  return {
    of(from) {
      const batches = known.get(from) ?? open(from)
      known.set(from, batches)
      return batches
    },
    close() {
      prices.stop()
      for (const batch of opened) batch.close()
    },
  }
}

/** Starts the pool that collects the jobs of a queue into batches. */
export function startBatches(
  plan: RowsPlan,
  deps: BatchesDeps & Pick<PoolsDeps, 'queues'>,
  options: PoolOptions,
): { readonly pool: Pool; readonly batches: Batches } {
  const batches: Batches = createBatches(plan, deps, {
    attempted: attempt => pool.attempted(attempt),
    progress: () => pool.progress(),
  })
  const pool = startPool(
    plan.queue,
    {
      queues: deps.queues,
      logger: deps.logger,
      open: queue => {
        const { lanes } = batches.of(queue)
        return job => (lanes.get(job.lane) as BatchPool).process(job)
      },
      onClosing: () => batches.close(),
    },
    options,
  )
  return { pool, batches }
}
