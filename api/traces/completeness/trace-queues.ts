import type { Queues } from '../../../shared/queue/queues.ts'
import { countRefused } from '../../../shared/queue/request-counts.ts'
import { readOldestWatermarks, type WatermarkSurface } from '../../../shared/queue/watermark.ts'

/** Watermark and refusals of requests with spans. */
export interface TraceQueues {
  /** Returns a time of Redis, and an earlier one: everything that was accepted before that is settled. Unix ms. */
  settledSpans(): Promise<{ readonly readAtMs: number; readonly settledBeforeMs: number }>
  /** Returns the requests of the surfaces that were refused in these hours, in hours since 1970. */
  refusedSpans(surfaces: readonly WatermarkSurface[], hours: readonly number[]): ReturnType<typeof countRefused>
}

/** Reads the queues. What is settled is that of all surfaces, because any of them can have sent spans of a trace. */
export function connectTraceQueues(queues: Queues): TraceQueues {
  return {
    async settledSpans() {
      const { readAtMs, settledBeforeMs } = await readOldestWatermarks(queues)
      return { readAtMs, settledBeforeMs: settledBeforeMs.traces }
    },
    refusedSpans: (surfaces, hours) => countRefused(queues, 'traces', surfaces, hours),
  }
}
