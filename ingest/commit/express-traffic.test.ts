import { expect, it } from 'vitest'
import { ExpressTraffic } from './express-traffic.ts'

it('lets a bulk commit wait until no express commit is in flight', async () => {
  const traffic = new ExpressTraffic()
  const events: string[] = []
  traffic.begin()
  traffic.begin()
  const bulk = traffic.gap().then(() => events.push('bulk'))
  traffic.end()
  await Promise.resolve()
  events.push('first')
  traffic.end()
  await bulk
  expect(events).toEqual(['first', 'bulk'])
  await traffic.gap()
})

it('lets a bulk commit pass at the latest after 20 ms', async () => {
  const traffic = new ExpressTraffic()
  traffic.begin()
  await traffic.gap()
  expect(traffic.isRecent).toBe(true)
  traffic.end()
})

it('reports recent commits for 100 ms', async () => {
  let now = 0
  const traffic = new ExpressTraffic(() => now)
  expect(traffic.isRecent).toBe(false)
  traffic.begin()
  traffic.end()
  await traffic.gap()
  now = 99
  expect(traffic.isRecent).toBe(true)
  now = 100
  expect(traffic.isRecent).toBe(false)
})
