import type { Redis } from 'ioredis'
import { HOUR_MS } from '../../../schemas/units.ts'
import { queueScript } from '../queue-script.ts'

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
interface Registry {
  readonly readAtMs: number
  readonly partitions: readonly RegisteredPartition[]
}

const REGISTER = queueScript('register-partitions')
const READ = queueScript('read-partitions')
const FORGET = queueScript('forget-partition')

/** Registers partitions before an edge writes to them, from the first one on. Who reads the registry afterwards knows them. */
export async function registerPartitions(
  redis: Redis,
  { first, count }: { readonly first: number; readonly count: number },
): Promise<Registry> {
  return registryOf(await REGISTER.run(redis, [PARTITIONS_KEY], [REGISTERED_FOR_MS, first, count]))
}

/** Reads the registered partitions in the order of their numbers. */
export async function readRegistry(redis: Redis): Promise<Registry> {
  return registryOf(await READ.run(redis, [PARTITIONS_KEY]))
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
  redis: Redis,
  { partition, value }: Pick<RegisteredPartition, 'partition' | 'value'>,
): Promise<boolean> {
  return (await FORGET.run(redis, [PARTITIONS_KEY], [partition, value])) === 1
}
