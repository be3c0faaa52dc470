import { expect, it } from 'vitest'
import { TransientError } from '../runtime/errors.ts'
import { createSemaphore } from './semaphore.ts'

it('runs no more tasks at once than it has places, in the order of arrival', async () => {
  const semaphore = createSemaphore(2)
  const { signal } = new AbortController()
  const started: number[] = []
  const finish: (() => void)[] = []
  const runs = [0, 1, 2, 3].map(i =>
    semaphore.run(signal, () => {
      started.push(i)
      return new Promise<void>(resolve => finish.push(resolve))
    }),
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

it('frees the place of a task that fails, and passes over who gave up waiting', async () => {
  const semaphore = createSemaphore(1)
  const patient = new AbortController().signal
  const impatient = new AbortController()
  const failing = semaphore.run(patient, () => new Promise((_, reject) => setImmediate(() => reject(new Error('no')))))
  const abandoned = semaphore.run(impatient.signal, async () => 'never')
  const served = semaphore.run(patient, async () => 'served')
  impatient.abort()
  await expect(abandoned).rejects.toThrow(TransientError)
  await expect(failing).rejects.toThrow('no')
  expect(await served).toBe('served')
  expect(await semaphore.run(patient, async () => 'again')).toBe('again')
})
