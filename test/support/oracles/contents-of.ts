import type { Redis } from 'ioredis'

/** Returns every key of a database with its value, sorted. Throws for a type that it cannot read. */
export async function contentsOf(redis: Redis): Promise<Record<string, unknown>> {
  const entries = (await redis.keys('*')).sort().map(async key => [key, await readValue(redis, key)])
  return Object.fromEntries(await Promise.all(entries))
}

async function readValue(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  // It has expired since its name was read.
  if (type === 'none') return undefined
  if (type === 'string') return redis.get(key)
  if (type === 'hash') return redis.hgetall(key)
  if (type === 'zset') return redis.zrange(key, '0', '-1', 'WITHSCORES')
  if (type === 'list') return redis.lrange(key, 0, -1)
  if (type === 'stream') return redis.xrange(key, '-', '+')
  // Digests are stored as bytes.
  if (type === 'set')
    return (await redis.smembersBuffer(key)).map(member => Buffer.from(member).toString('latin1')).sort()
  throw new Error(`${key} has the type ${type}, which this function cannot read`)
}
