import type { Redis } from 'ioredis'
import { HOUR_MS } from '../../../schemas/units.ts'

/**
 * Partitions that may contain something: number → the time of the first registration, and the time until which edges may write
 * to it, in Unix ms of this Redis.
 */
export const PARTITIONS_KEY = 'penstock:{installation}:partitions'

/** How long a partition is registered after the last edge that writes to it has said so. */
export const REGISTERED_FOR_MS = HOUR_MS

/** A registered partition. */
export interface RegisteredPartition {
  readonly partition: number
  /** Time of its first registration, in Unix ms of the Redis that has the registry. */
  readonly sinceMs: number
  /** The value of its field, which `forgetPartition` compares. */
  readonly value: string
  /** Whether edges may write to it. */
  readonly isUsed: boolean
}

/** The registry at one time, which is in Unix ms of its Redis. */
export interface Registry {
  readonly readAtMs: number
  readonly partitions: readonly RegisteredPartition[]
}

/** KEYS partitions; ARGV lifetime, first partition, their number. */
const REGISTER = `#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local first = tonumber(ARGV[2])
for partition = first, first + tonumber(ARGV[3]) - 1 do
  local since, before = now, 0
  local known = redis.call('HGET', KEYS[1], partition)
  if known then since, before = string.match(known, '^(%d+) (%d+)$') end
  local untilMs = math.max(now + tonumber(ARGV[1]), tonumber(before))
  redis.call('HSET', KEYS[1], partition, string.format('%.0f %.0f', since, untilMs))
end
return {now, redis.call('HGETALL', KEYS[1])}
`

/** KEYS partitions. Returns the time, then the registered partitions and their values. */
const READ = `#!lua flags=no-writes
local time = redis.call('TIME')
return {time[1] * 1000 + math.floor(time[2] / 1000), redis.call('HGETALL', KEYS[1])}
`

/** KEYS partitions; ARGV partition, value. Returns whether the partition was removed, because no edge has registered it again. */
const FORGET = `#!lua flags=allow-oom
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
`

/** Registers partitions before an edge writes to them, from the first one on. Who reads the registry afterwards knows them. */
export async function registerPartitions(
  redis: Pick<Redis, 'eval'>,
  { first, count }: { readonly first: number; readonly count: number },
): Promise<Registry> {
  return registryOf(await redis.eval(REGISTER, 1, PARTITIONS_KEY, REGISTERED_FOR_MS, first, count))
}

/** Reads the registered partitions in the order of their numbers. */
export async function readRegistry(redis: Pick<Redis, 'eval'>): Promise<Registry> {
  return registryOf(await redis.eval(READ, 1, PARTITIONS_KEY))
}

function registryOf(reply: unknown): Registry {
  const [readAtMs, fields] = reply as [number, string[]]
  const partitions: RegisteredPartition[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const value = fields[i + 1] as string
    const [sinceMs = 0, untilMs = 0] = value.split(' ').map(Number)
    partitions.push({ partition: Number(fields[i]), sinceMs, value, isUsed: untilMs >= readAtMs })
  }
  return { readAtMs, partitions: partitions.sort((a, b) => a.partition - b.partition) }
}

/** Removes a partition that is empty and that no edge uses. Returns false if it is used again. */
export async function forgetPartition(
  redis: Pick<Redis, 'eval'>,
  { partition, value }: Pick<RegisteredPartition, 'partition' | 'value'>,
): Promise<boolean> {
  return (await redis.eval(FORGET, 1, PARTITIONS_KEY, partition, value)) === 1
}
