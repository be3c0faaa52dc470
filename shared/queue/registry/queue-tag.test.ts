import { describe, expect, it } from 'vitest'
import { QUEUES } from '../../../schemas/queues/names.ts'
import { hashSlot } from './hash-slot.ts'
import { isDivided, MAX_PARTITIONS, numberOf, partitionSlot, queueTag } from './queue-tag.ts'

describe('hash slots', () => {
  it('are those of Redis Cluster', () => {
    // CLUSTER KEYSLOT of redis-server 7.0.
    expect(['foo', '123456789', 'source-maps.0'].map(hashSlot)).toEqual([12_182, 12_739, 7_143])
  })
})

describe('tags of partitions', () => {
  it('are the name of the queue and 0 for partition 0', () => {
    expect(QUEUES.map(queue => queueTag(queue, 0))).toEqual(QUEUES.map(queue => `${queue}.0`))
  })

  it('have the slot of their partition in every divided queue, so that one script can move payloads between queues', () => {
    for (let partition = 1; partition <= MAX_PARTITIONS; partition++) {
      for (const queue of QUEUES.filter(isDivided)) {
        expect(hashSlot(queueTag(queue, partition))).toBe(partitionSlot(partition))
      }
    }
    expect(partitionSlot(1)).toBe(hashSlot(queueTag('source-maps', 0)))
    expect(partitionSlot(2)).toBe(hashSlot(queueTag('completions', 0)))
  })

  it('state the number of their partition', () => {
    for (const partition of [0, 1, MAX_PARTITIONS])
      expect(numberOf(queueTag('dead-letters', partition))).toBe(partition)
  })

  it('never change, because they name keys that exist', () => {
    expect([queueTag('traces', 1), queueTag('dead-letters', 3), queueTag('receipts', 64)]).toMatchInlineSnapshot(`
      [
        "traces.1.02lp",
        "dead-letters.3.06v4",
        "receipts.64.09z8",
      ]
    `)
  })

  it('spread eight partitions evenly over three masters', () => {
    const masters = Array.from({ length: 8 }, (_, i) => Math.floor((partitionSlot(i + 1) * 3) / 16_384))
    const counts = [0, 1, 2].map(master => masters.filter(each => each === master).length)
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(2)
  })
})
