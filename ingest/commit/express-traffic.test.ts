import { expect, it } from 'vitest'
import { ExpressTraffic } from './express-traffic.ts'

it('lets a bulk commit wait until no express commit is in flight', async () => {
  const traffic = new ExpressTraffic()
  const events: string[] = []
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const commits = [traffic.run(() => first.promise), traffic.run(() => second.promise)]
  const bulk = traffic.gap().then(() => events.push('bulk'))
  first.resolve()
  await commits[0]
  events.push('first')
  second.resolve()
  await commits[1]
  events.push('second')
  await bulk
  expect(events).toEqual(['first', 'second', 'bulk'])
  await traffic.gap()
})

it('lets a bulk commit pass at the latest after 20 ms', async () => {
  const traffic = new ExpressTraffic()
  const express = Promise.withResolvers<void>()
  const commit = traffic.run(() => express.promise)
  await traffic.gap()
  expect(traffic.isRecent).toBe(true)
  express.resolve()
  await commit
})

it('ends a wait when an express commit fails, and reports recent commits for 100 ms', async () => {
  let now = 0
  const traffic = new ExpressTraffic(() => now)
  expect(traffic.isRecent).toBe(false)
  await expect(traffic.run(() => Promise.reject(new Error('late')))).rejects.toThrow('late')
  await traffic.gap()
  now = 99
  expect(traffic.isRecent).toBe(true)
  now = 100
  expect(traffic.isRecent).toBe(false)
})
