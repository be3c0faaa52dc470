import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { onOneServer } from '../../../test/support/queue-on.ts'
import type { QueuesRead } from '../queues.ts'
import { FollowedQueues } from './queue-feed.ts'

it('has queues of its own process at once, also after a read that began before their registration', async () => {
  const began = Promise.withResolvers<QueuesRead>()
  const queues = onOneServer({ status: 'ready' } as Redis)
  const feed = new FollowedQueues({
    queues: Object.assign(queues, { read: () => began.promise }),
    logger: pino({ level: 'silent' }),
  })
  const followed = () => feed.of('traces')
  try {
    let changes = 0
    const read = Promise.withResolvers<void>()
    feed.onChange(() => {
      if (++changes === 2) read.resolve()
    })
    feed.add([0, 1])
    expect(followed()).toEqual([queues.at('traces', 0), queues.at('traces', 1)])
    began.resolve({ ...queues.ofNumbers([0, 2]), readAtMs: 0, numbers: [0, 2] })
    await read.promise
    expect(followed()).toEqual([queues.at('traces', 0), queues.at('traces', 1), queues.at('traces', 2)])
  } finally {
    feed.stop()
  }
})
