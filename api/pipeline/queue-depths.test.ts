import { describe, expect, it } from 'vitest'
import { QUEUES, type QueueName } from '../../schemas/queues/names.ts'
import { HOUR_MS } from '../../schemas/units.ts'
import type { SurfaceWatermarks } from '../../shared/queue/watermark.ts'
import { countedQueues, depthsOf, waitingRequests } from './queue-depths.ts'

const NOW = 500_000 * HOUR_MS + 60_000

/** Watermarks of a surface with work in these queues, all of which was accepted at this time or later. */
function marksOf(busy: readonly QueueName[], sinceMs = NOW): SurfaceWatermarks {
  const each = (value: (queue: QueueName) => number) =>
    Object.fromEntries(QUEUES.map(queue => [queue, value(queue)])) as Record<QueueName, number>
  return {
    unfinishedWork: each(queue => (busy.includes(queue) ? 100 : 0)),
    unfinishedSinceMs: each(queue => (busy.includes(queue) ? sinceMs : NOW)),
    settledBeforeMs: {} as SurfaceWatermarks['settledBeforeMs'],
  }
}

describe('the requests that are counted', () => {
  it('are those of surfaces that wait, of the hours in which they can have arrived', () => {
    const surfaces = [
      { surfaceId: 'srf_1', marks: marksOf(['traces'], NOW - 2 * HOUR_MS) },
      { surfaceId: 'srf_2', marks: marksOf([]) },
      { surfaceId: 'srf_3', marks: marksOf(['replay-chunks']) },
    ]
    const { pairs, hours } = waitingRequests(surfaces, NOW)
    expect(pairs).toEqual([
      { surfaceId: 'srf_1', kind: 'traces' },
      { surfaceId: 'srf_3', kind: 'replay' },
    ])
    expect(hours).toEqual([499_998, 499_999, 500_000])
    const counted = countedQueues(pairs, id => `ws_1/${id}`).filter(({ members }) => members.length > 0)
    expect(counted).toEqual([
      { queue: 'traces', members: ['ws_1/srf_1'] },
      { queue: 'replay', members: ['ws_1/srf_3'] },
    ])
  })

  it('begin an hour earlier when a request can have arrived before the hour in which it was accepted', () => {
    const { hours } = waitingRequests([{ surfaceId: 'srf_1', marks: marksOf(['logs'], NOW - 50_000) }], NOW)
    expect(hours).toEqual([499_999, 500_000])
  })

  it('are none when nothing waits, or when only dead letters do, which are in the log', () => {
    const surfaces = [{ surfaceId: 'srf_1', marks: marksOf(['dead-letters', 'dead-letter-index']) }]
    expect(waitingRequests(surfaces, NOW)).toEqual({ pairs: [], hours: [] })
  })

  it('are not counted when they are too many', () => {
    const surfaces = Array.from({ length: 1_000 }, (_, i) => ({
      surfaceId: `srf_${i}`,
      marks: marksOf(['traces'], NOW - 24 * HOUR_MS),
    }))
    expect(waitingRequests(surfaces, NOW).hours).toBeUndefined()
  })
})

describe('the depths', () => {
  const none = [[], [], [], [], [], [], [], []] as const

  it('are what was accepted and is not in the log, by the larger of two counts of which one may be removed', () => {
    const accepted = [[3, 5], ...none.slice(1)]
    const logged = [
      { kind: 'traces', hour: 10, accepted: 7, processed: 6 },
      { kind: 'traces', hour: 11, accepted: 4, processed: 2 },
    ] as const
    expect(depthsOf(accepted, [10, 11], logged)).toMatchObject({ traces: 1 + 3, logs: 0 })
  })

  it('are not negative while a request is in the log and not yet counted', () => {
    const logged = [{ kind: 'traces', hour: 10, accepted: 0, processed: 2 }] as const
    expect(depthsOf([[1], ...none.slice(1)], [10], logged)).toMatchObject({ traces: 0 })
  })
})
