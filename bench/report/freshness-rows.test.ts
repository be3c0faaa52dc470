import { expect, it } from 'vitest'
import type { Marker } from '../measure/marker-sender.ts'
import type { Freshness } from '../measure/measure-freshness.ts'
import { idleRows } from './freshness-rows.ts'

const percentiles = { p50Ms: 20, p99Ms: 25, p999Ms: 25, maxMs: 25 }

function roundOf(markers: readonly Marker[]): Freshness {
  const watch = { resolution: () => percentiles, polls: { count: 50, seconds: 1 } }
  return { markers, watch, pollCpuSeconds: 0.002 }
}

const seenAfter = (ms: number): Marker => ({ sentAt: 0, acknowledgedAt: 10, visibleAt: 10 + ms })

it('measures from acknowledgement to visibility, with one sample a round', () => {
  const [row] = idleRows([roundOf([seenAfter(300), seenAfter(100), seenAfter(200)]), roundOf([seenAfter(50)])])
  expect(row?.samples).toEqual([200, 50])
  expect(row?.details?.longest).toBe('300 ms')
})

it('leaves out refused markers', () => {
  const [row] = idleRows([roundOf([{ sentAt: 0, isRefused: true }, seenAfter(70)])])
  expect(row?.samples).toEqual([70])
})

it('throws for a round in which nothing was acknowledged', () => {
  expect(() => idleRows([roundOf([{ sentAt: 0, isRefused: true }])])).toThrow(RangeError)
})

it('reports the share of a core that the polls take', () => {
  expect(idleRows([roundOf([seenAfter(1)])])[0]?.details).toMatchObject({
    'ClickHouse’s CPU for polling': '2.0 ms a poll, 10 % of a core',
  })
})
