import { expect, it } from 'vitest'
import { TransientError } from '../runtime/errors.ts'
import { Budget } from './budget.ts'

it('runs no more tasks at once than it has slots, in the order of arrival', async () => {
  const slots = new Budget(2)
  const { signal } = new AbortController()
  const started: number[] = []
  const finish: (() => void)[] = []
  const runs = [0, 1, 2, 3].map(i =>
    slots.run(
      1,
      () => {
        started.push(i)
        return new Promise<void>(resolve => finish.push(resolve))
      },
      { signal },
    ),
  )
  await expect.poll(() => started).toEqual([0, 1])
  finish[0]?.()
  await expect.poll(() => started).toEqual([0, 1, 2])
  finish[1]?.()
  await expect.poll(() => started).toEqual([0, 1, 2, 3])
  finish[2]?.()
  finish[3]?.()
  await Promise.all(runs)
})

it('frees the slot of a task that fails, and skips a task whose signal fired', async () => {
  const slots = new Budget(1)
  const patient = new AbortController().signal
  const impatient = new AbortController()
  const fail = () => new Promise((_, reject) => setImmediate(() => reject(new Error('no'))))
  const failing = slots.run(1, fail, { signal: patient })
  const abandoned = slots.run(1, async () => 'never', { signal: impatient.signal })
  const served = slots.run(1, async () => 'served', { signal: patient })
  impatient.abort()
  await expect(abandoned).rejects.toThrow(TransientError)
  await expect(failing).rejects.toThrow('no')
  expect(await served).toBe('served')
  expect(await slots.run(1, async () => 'again', { signal: patient })).toBe('again')
})

it('grants a smaller amount at once when the larger one before it gives up', async () => {
  const budget = new Budget(10)
  const giveBack = await budget.acquire(6)
  const impatient = new AbortController()
  const large = budget.acquire(8, { signal: impatient.signal })
  const small = budget.acquire(4)
  impatient.abort()
  await expect(large).rejects.toThrow(TransientError)
  const giveBackSmall = await small
  giveBack()
  giveBackSmall()
})

it('grants an amount over its limit once nothing else is held', async () => {
  const budget = new Budget(10)
  const giveBack = await budget.acquire(1)
  let isGranted = false
  const large = budget.acquire(100).then(release => {
    isGranted = true
    return release
  })
  await new Promise(resolve => setImmediate(resolve))
  expect(isGranted).toBe(false)
  giveBack()
  expect(await large).toBeTypeOf('function')
})

it('tells when everything was given back, and that something is held until then', async () => {
  let idleTimes = 0
  const budget = new Budget(2, { onIdle: () => idleTimes++ })
  expect(budget.isIdle).toBe(true)
  const giveBack = await budget.acquire(1)
  const giveBackOther = await budget.acquire(1)
  const waiting = budget.acquire(1)
  giveBack()
  const giveBackWaiting = await waiting
  giveBackOther()
  expect({ idleTimes, isIdle: budget.isIdle }).toEqual({ idleTimes: 0, isIdle: false })
  giveBackWaiting()
  giveBackWaiting()
  expect({ idleTimes, isIdle: budget.isIdle }).toEqual({ idleTimes: 1, isIdle: true })
})
