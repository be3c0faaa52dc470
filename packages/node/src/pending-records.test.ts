import { expect, it } from 'vitest'
import { createPendingRecords } from './pending-records.ts'

it('returns the records that were not removed, once', () => {
  const pending = createPendingRecords<string>(10)
  for (const record of ['a', 'b', 'c']) pending.add(record)
  pending.remove(['b'])
  expect(pending.take()).toEqual(['a', 'c'])
  expect(pending.take()).toEqual([])
})

it('forgets the oldest above its limit', () => {
  const pending = createPendingRecords<number>(3)
  for (let i = 0; i < 100; i++) pending.add(i)
  expect(pending.take()).toEqual([97, 98, 99])
})
