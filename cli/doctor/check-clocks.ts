import type { Redis } from 'ioredis'
import { serversOf } from '../../clickhouse/client.ts'
import { redisTimeMs } from '../../shared/queue/watermark.ts'
import type { Examined } from '../command-context.ts'
import { type Finding, found } from './check.ts'
import { readServer } from './check-clickhouse.ts'
import { queueServers } from './check-redis.ts'

/** The edge is not ready beyond this (shared/queue/durability-watch.ts). */
const MAX_DIFFERENCE_MS = 60_000
const NOTED_DIFFERENCE_MS = 10_000

/**
 * Compares the clock of this host with those of the stores. A store that does not answer is left out, because the check of the
 * store reports it.
 */
export async function checkClocks({ queues, directory, clickhouse, now }: Examined): Promise<Finding[]> {
  const differenceTo = async (read: () => Promise<number>) => {
    const beforeMs = now()
    const theirsMs = await read()
    return (beforeMs + now()) / 2 - theirsMs
  }
  const ofRedis = (name: string, redis: Redis) =>
    differenceTo(() => redisTimeMs(redis)).then(ms => ({ name, aheadMs: ms }))
  const read = await Promise.allSettled([
    queues()
      .then(queueServers)
      .then(servers => Promise.all(servers.map(redis => ofRedis('the Redis of the queues', redis)))),
    directory().then(async ({ redis }) => [await ofRedis('the Redis of the directory', redis)]),
    ...serversOf(clickhouse).map(async ({ client }) => [
      {
        name: 'ClickHouse',
        aheadMs: await differenceTo(async () => (await readServer(client)).nowMs),
      },
    ]),
  ])
  const clocks = read.flatMap(result => (result.status === 'fulfilled' ? result.value : []))
  const noted = clocks.filter(({ aheadMs }) => Math.abs(aheadMs) > NOTED_DIFFERENCE_MS)
  if (noted.length > 0) return noted.map(describe)
  if (clocks.length === 0) return [found.fault('no store answers, so that its clock is unknown')]
  const mostMs = Math.max(...clocks.map(({ aheadMs }) => Math.abs(aheadMs)))
  return [found.ok(`this host and the stores differ by ${Math.ceil(mostMs / 1_000)} s at most`)]
}

function describe({ name, aheadMs }: { readonly name: string; readonly aheadMs: number }): Finding {
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  const text = `the clock of this host is ${Math.round(Math.abs(aheadMs) / 1_000)} s ${side} that of ${name}`
  return Math.abs(aheadMs) > MAX_DIFFERENCE_MS ? found.fault(text) : found.warning(text)
}
