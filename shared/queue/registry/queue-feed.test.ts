import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { FollowedPartitions } from './queue-feed.ts'

it('has partitions of its own process at once, also after a read that began before their registration', async () => {
  const began = Promise.withResolvers<{ readAtMs: number; numbers: readonly number[] }>()
  const common = { status: 'ready' } as Redis
  const feed = new FollowedPartitions({
    queues: { common, first: 0, partitions: () => began.promise },
    logger: pino({ level: 'silent' }),
  })
  try {
    let changes = 0
    const read = Promise.withResolvers<void>()
    feed.onChange(() => {
      if (++changes === 2) read.resolve()
    })
    feed.add([0, 1])
    expect(feed.current).toEqual([0, 1])
    began.resolve({ readAtMs: 0, numbers: [0, 2] })
    await read.promise
    expect(feed.current).toEqual([0, 1, 2])
  } finally {
    feed.stop()
  }
})
