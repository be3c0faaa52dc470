import { createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DAY_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { queueKeys } from '../../../shared/queue/queue.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { InsertPace, type PacedInserts } from '../../../workers/sink/pace/insert-pace.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const url = `${services.redisUrl}/10`
const logger = pino({ level: 'silent' })
const SPANS = { queue: 'traces', lane: 'express', intervalMs: MINUTE_MS } as const
const IN_A_MOMENT: PacedInserts = { ...SPANS, intervalMs: 20 }
const key = queueKeys('traces').pace('express')
const opened: Redis[] = []
let redis: Redis

beforeEach(async () => {
  redis = connect(url)
  await redis.flushdb()
})

afterEach(() => {
  for (const connection of opened.splice(0)) connection.disconnect()
})

function connect(address: string): Redis {
  const connection = connectConsumer(address, logger)
  opened.push(connection)
  return connection
}

/** Returns the pace of a worker with a connection of its own. */
function worker(inserts: Partial<PacedInserts> = {}): InsertPace {
  return new InsertPace({ redis: connect(url), logger }, { ...SPANS, ...inserts })
}

/** Reserves this many inserts, for each worker in turn. Returns after how many minutes each comes, rounded up. */
async function reserve(count: number, ...workers: InsertPace[]): Promise<number[]> {
  const minutes: number[] = []
  for (let i = 0; i < count; i++)
    minutes.push(await minutesUntil((workers[i % workers.length] as InsertPace).reserve()))
  return minutes
}

const minutesUntil = async (reserved: Promise<number>) => Math.ceil((await reserved) / MINUTE_MS)

const AT_ONCE = [0, 0, 0, 0]

describe('the pace of inserts', () => {
  it('lets four inserts follow a pause at once, and then one in each interval, over all workers (reserve-insert.lua)', async () => {
    expect(await reserve(8, worker(), worker(), worker())).toEqual([...AT_ONCE, 1, 2, 3, 4])
  })

  it('saves no more time in a longer pause', async () => {
    await redis.set(key, Date.now() - 60 * MINUTE_MS)
    expect(await reserve(5, worker())).toEqual([...AT_ONCE, 1])
  })

  it('lets no batch wait for more than four intervals, however many workers have reserved and were killed', async () => {
    const killed = Array.from({ length: 8 }, () => worker())
    expect((await reserve(16, ...killed)).slice(8)).toEqual(Array(8).fill(4))
    for (const connection of opened.splice(1)) connection.disconnect()
    expect(await reserve(2, worker())).toEqual([4, 4])
  })

  it('comes an interval after a batch that was full, however many were', async () => {
    const busy = worker()
    expect(await reserve(5, busy)).toEqual([...AT_ONCE, 1])
    for (let full = 0; full < 6; full++) expect(await minutesUntil(busy.reserve(true))).toBe(1)
  })

  it('gives back only the time of the batch that was full, and none that other workers wait for', async () => {
    const busy = worker()
    await reserve(4, busy)
    expect(await reserve(3, busy, worker(), worker())).toEqual([1, 2, 3])
    expect(await minutesUntil(busy.reserve(true))).toBe(3)
  })

  it('gives back no time while workers have reserved up to the bound', async () => {
    const workers = Array.from({ length: 8 }, () => worker())
    await reserve(16, ...workers)
    expect(await minutesUntil((workers[0] as InsertPace).reserve(true))).toBe(4)
  })

  it('is another one for each lane and each queue, so that a busy one delays no other', async () => {
    await reserve(16, worker())
    expect(await reserve(5, worker({ lane: 'bulk' }))).toEqual([...AT_ONCE, 1])
    expect(await reserve(5, worker({ queue: 'logs' }))).toEqual([...AT_ONCE, 1])
  })

  it('believes no time that is further off, as after the clock of Redis was set back', async () => {
    await redis.set(key, Date.now() + DAY_MS)
    expect(await reserve(1, worker())).toEqual([4])
    expect(Number(await redis.get(key))).toBeLessThanOrEqual(Date.now() + 5 * MINUTE_MS)
  })

  it('leaves a key that expires when the whole pause is saved', async () => {
    await reserve(1, worker())
    expect(await redis.pttl(key)).toBeLessThanOrEqual(MINUTE_MS)
    await reserve(16, worker())
    expect(await redis.pttl(key)).toBeGreaterThan(7 * MINUTE_MS)
    expect(await redis.pttl(key)).toBeLessThanOrEqual(8 * MINUTE_MS)
  })

  it('counts a time from its request, however late the answer is read', async () => {
    const answer = () => delay(100, 200)
    const answering = { evalsha: answer, eval: answer }
    const next = new InsertPace({ redis: answering, logger }, SPANS).next()
    expect(await Promise.race([next.then(() => 'due'), delay(290, 'late')])).toBe('due')
  })

  it('lets an insert go after one interval while Redis refuses or does not answer', async () => {
    const refuse = () => Promise.reject(new Error('NOPERM'))
    const redis = { evalsha: refuse, eval: refuse }
    const refusing = new InsertPace({ redis, logger }, SPANS)
    await expect(refusing.reserve()).rejects.toThrow('NOPERM')
    await new InsertPace({ redis, logger }, IN_A_MOMENT).next()

    const sockets = new Set<Socket>()
    const silent = createServer(socket => sockets.add(socket)).listen(0, '127.0.0.1')
    const address = await until('the server listens', () => silent.address())
    const port = typeof address === 'object' ? address.port : 0
    await new InsertPace({ redis: connect(`redis://127.0.0.1:${port}`), logger }, IN_A_MOMENT).next()
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
})
