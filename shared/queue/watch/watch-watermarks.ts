import { setTimeout as delay } from 'node:timers/promises'
import { ADMITTED_QUEUES } from '../../../schemas/queues/names.ts'
import type { Metrics } from '../../runtime/metrics.ts'
import type { Queues } from '../queues.ts'
import { readOldestWatermarks, readWatermarks, type WatermarkSurface } from '../watermark.ts'

/** A report of metrics must not wait for Redis. */
const READ_TIMEOUT_MS = 1_000
/** Surfaces with a series of their own: those with the most unfinished cost in each queue. */
const SHOWN_SURFACES = 20

/**
 * Shows how far the watermarks are behind, by kind of request: for all surfaces together, and for those with the most
 * unfinished cost. A surface without a series has a lag between 0 and that of all. Nothing is shown while Redis does not answer.
 */
export function watchWatermarks(metrics: Metrics, queues: Queues): void {
  metrics.gauge({
    name: 'penstock_watermark_lag_seconds',
    help: `Everything accepted longer ago than this is settled, by kind of request. An empty surface means all of them, and the others are at most the ${SHOWN_SURFACES} with the most unfinished cost in each queue.`,
    labelNames: ['signal', 'surface'],
    async collect() {
      this.reset()
      if (queues.common.status !== 'ready') return
      const lags = readLags(queues).catch(() => [])
      for (const { signal, surface, seconds } of await Promise.race([
        lags,
        delay(READ_TIMEOUT_MS, [], { ref: false }),
      ])) {
        this.set({ signal, surface }, seconds)
      }
    },
  })
}

interface Lag {
  readonly signal: string
  readonly surface: string
  readonly seconds: number
}

async function readLags(queues: Queues): Promise<Lag[]> {
  const all = await readOldestWatermarks(queues)
  const surfaces = await busiestSurfaces(queues)
  const { readAtMs, surfaces: marks } = await readWatermarks(queues, surfaces)
  return ADMITTED_QUEUES.flatMap(signal => [
    { signal, surface: '', seconds: (all.readAtMs - all.settledBeforeMs[signal]) / 1_000 },
    ...marks.flatMap(({ settledBeforeMs }, i) => {
      const seconds = (readAtMs - settledBeforeMs[signal]) / 1_000
      return seconds > 0 ? [{ signal, surface: surfaces[i]?.surfaceId ?? '', seconds }] : []
    }),
  ])
}

async function busiestSurfaces(queues: Queues): Promise<WatermarkSurface[]> {
  const { of } = await queues.read()
  const lists = await Promise.all(
    [...ADMITTED_QUEUES, 'dead-letters' as const]
      .flatMap(of)
      .map(({ redis, keys }) => redis.zrevrange(keys.shares, 0, SHOWN_SURFACES - 1)),
  )
  return [...new Set(lists.flat())].map(member => {
    const [workspaceId = '', surfaceId = ''] = member.split('/')
    return { workspaceId, surfaceId }
  })
}
