import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { ExpressFirst } from './express-first.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Returns how long a bulk lane pauses after it has decoded for this time, in steps of 10 ms. */
async function pauseAfter(order: ExpressFirst, decodedMs: number): Promise<number> {
  let isOver = false
  void order.pauseBulk(decodedMs).then(() => {
    isOver = true
  })
  await Promise.resolve()
  let pausedMs = 0
  for (; !isOver && pausedMs < 10_000; pausedMs += 10) await vi.advanceTimersByTimeAsync(10)
  return pausedMs
}

it('pauses a bulk lane for as long as it has decoded, and at most a second, while an express job is in progress', async () => {
  const order = new ExpressFirst()
  const job = Promise.withResolvers<string>()
  expect(await pauseAfter(order, 100)).toBe(0)
  const express = order.run(() => job.promise)
  expect(await pauseAfter(order, 10)).toBe(0)
  expect(await pauseAfter(order, 100)).toBe(100)
  expect(await pauseAfter(order, 60_000)).toBe(1_000)
  job.resolve('stored')
  expect(await express).toBe('stored')
  expect(await pauseAfter(order, 100)).toBe(0)
})

it('counts an express job that fails as ended', async () => {
  const order = new ExpressFirst()
  await expect(order.run(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  expect(await pauseAfter(order, 100)).toBe(0)
})
