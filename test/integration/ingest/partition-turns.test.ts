import { pino } from 'pino'
import { expect, it } from 'vitest'
import { RedisClock } from '../../../ingest/admission/redis-clock.ts'
import { type PartitionTarget, PartitionTurns } from '../../../ingest/commit/lane-writers.ts'
import { connectProducer } from '../../../shared/queue/redis.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

it('keeps one commit to a server in flight when no server was usable and one is again', async () => {
  const logger = pino({ level: 'silent' })
  const redis = connectProducer(`${sharedServices().redisUrl}/6`, 5_000, logger)
  try {
    let isUsable = true
    const clock = new RedisClock()
    clock.observe(Date.now())
    const target: PartitionTarget = { partition: 0, redis, clock, node: () => 'a', mayUse: () => isUsable }
    const turns = new PartitionTurns(
      { targets: { current: [target] }, queue: 'spans', lane: 'express', logger },
      { frames: 10, cost: 10 },
    )
    await until('the queue is open', () => turns.isUsable)
    const first = turns.take()
    if (first === undefined) throw new Error('no server is free')
    isUsable = false
    const second = turns.next(first)
    isUsable = true
    expect(turns.take()).toBeUndefined()
    turns.giveBack(second)
    expect(turns.take()?.node).toBe('a')
  } finally {
    redis.disconnect()
  }
})
