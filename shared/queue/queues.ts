import type { Redis } from 'ioredis'
import type { QueueName } from '../../schemas/queues/names.ts'
import { type Registry, readRegistry } from './registry/registry.ts'

/** Connections of one process to the servers of the queues, all of the same kind. */
export interface QueueConnections {
  /** Reaches what belongs to the installation, or to a queue as a whole. */
  readonly common: Redis
  /** The partition that exists in every installation of this kind, and into which letters are replayed. */
  readonly first: number
  /** Returns the connection to the server of a partition. */
  at(queue: QueueName, partition: number): Redis
  /** Returns the partition of other queues into which a finished job of this one moves what derives from it. */
  movesTo(queue: QueueName, partition: number): number
  /**
   * Reads which partitions may contain something. A partition is registered before anything is accepted in it, and not before
   * the clock of its server has passed the time of its registration. So those that are read have all that any server had
   * accepted before `readAtMs`.
   */
  partitions(): Promise<PartitionsRead>
}

/** The numbers of the partitions that may contain something, and the time of the registry at which they were read. */
export interface PartitionsRead {
  readonly readAtMs: number
  readonly numbers: readonly number[]
}

/** Returns the connections of an installation whose queues are in one Redis. */
export function onOneServer(redis: Redis): QueueConnections {
  return {
    common: redis,
    first: 0,
    at: () => redis,
    movesTo: (_queue, partition) => partition,
    partitions: async () => readWith([0], await readRegistry(redis)),
  }
}

/** Returns the partitions that always exist with the registered ones. */
export function readWith(always: readonly number[], { readAtMs, partitions }: Registry): PartitionsRead {
  return { readAtMs, numbers: [...new Set([...always, ...partitions.map(({ partition }) => partition)])] }
}
