import { describe, expect, it } from 'vitest'
import { EventQueue } from './event-queue.ts'
import { EVENT, type RecordedEvent } from './recorded-event.ts'

const event = (timestamp: number, name = '', type: number = EVENT.incremental): RecordedEvent => ({
  type,
  timestamp,
  data: { name },
})
const takeAll = (queue: EventQueue, atMost = Number.POSITIVE_INFINITY) => {
  const taken: string[] = []
  for (let next = queue.take(atMost); next !== undefined; next = queue.take(atMost)) {
    taken.push(`${next.timestamp}${next.data.name}`)
  }
  return taken
}

describe('a queue of events', () => {
  it('gives events in the order of time, those of one time as they came, and none before its time', () => {
    const queue = new EventQueue()
    for (const [at, name] of [
      [5, 'a'],
      [3, 'b'],
      [5, 'c'],
      [4, 'd'],
    ] as const)
      queue.add(event(at, name), 10)
    expect(queue.nextAt).toBe(3)
    expect(queue.bytes).toBe(40)
    expect(takeAll(queue, 4)).toEqual(['3b', '4d'])
    queue.add(event(1, 'late'), 10)
    expect(takeAll(queue)).toEqual(['1late', '5a', '5c'])
    expect({ bytes: queue.bytes, nextAt: queue.nextAt }).toEqual({ bytes: 0, nextAt: undefined })
  })

  it('begins at a snapshot: of what is before it, only the last size is kept', () => {
    const queue = new EventQueue()
    queue.add(event(1, 'size', EVENT.meta), 1)
    queue.add(event(2, 'move'), 1)
    queue.add(event(3, 'size', EVENT.meta), 1)
    const snapshot = event(4, 'snapshot', EVENT.fullSnapshot)
    queue.add(snapshot, 1)
    queue.beginAt(snapshot)
    queue.add(event(5, 'move'), 1)
    expect(queue.bytes).toBe(3)
    expect(takeAll(queue)).toEqual(['3size', '4snapshot', '5move'])
  })

  it('keeps what is after a snapshot that comes too late, and begins at the latest of several', () => {
    const queue = new EventQueue()
    queue.add(event(9, 'after'), 1)
    for (const at of [7, 5]) {
      const snapshot = event(at, 'snapshot', EVENT.fullSnapshot)
      queue.add(snapshot, 1)
      queue.beginAt(snapshot)
    }
    expect(takeAll(queue)).toEqual(['7snapshot', '9after'])
  })

  it.each([
    ['descending', (i: number) => -i],
    ['scattered', (i: number) => (i * 7_919) % 100_003],
  ])('takes time in proportion to the number of events if their times are %s', (_, timeOf) => {
    const queue = new EventQueue()
    const count = 200_000
    const begin = performance.now()
    for (let i = 0; i < count; i++) {
      const one = event(timeOf(i), '', i % 50 === 0 ? EVENT.fullSnapshot : EVENT.incremental)
      queue.add(one, 1)
      if (i % 50 === 0 && i < count / 2) queue.beginAt(one)
      if (i % 5_000 === 0) expect(queue.nextAt).toBeDefined()
    }
    takeAll(queue)
    // Inserting each event at its position takes 10 s for a quarter of them, and 16 times that for all.
    expect(performance.now() - begin).toBeLessThan(30_000)
  })
})
