import { z } from 'zod'
import { deliverySettings } from '../alerts/delivery/settings.ts'
import { POOL_NAMES, type PoolName, poolNameSchema } from '../schemas/queues/names.ts'
import { GIB, MIB } from '../schemas/units.ts'
import {
  backupSettings,
  clickhouseSettings,
  count,
  durabilitySettings,
  objectStoreSettings,
  port,
  processSettings,
  publicUrl,
  redisSettings,
  retentionSettings,
} from '../shared/runtime/config.ts'
import type { LetterLimits } from './queue/letter-quota.ts'
import type { PoolOptions } from './queue/pool.ts'

const MIN_SYMBOLICATION_HEAP_BYTES = 96 * MIB
/** Room for the largest source map of a build, and for those that were parsed before. */
const FULL_SYMBOLICATION_HEAP_BYTES = 1_152 * MIB

/** Settings of the workers process. `deploy/env.example` describes them. */
export const workersConfigSchema = z
  .object({
    ...processSettings,
    ...redisSettings,
    ...durabilitySettings,
    ...clickhouseSettings,
    ...objectStoreSettings,
    ...backupSettings,
    ...retentionSettings,
    ...deliverySettings,
    PUBLIC_URL: publicUrl(),
    WORKERS_ADMIN_PORT: port(4302),
    /** Bounds of an open batch. It is full at the first bound that it reaches. */
    BATCH_MAX_ROWS: count(400_000),
    BATCH_MAX_BYTES: count(64 * MIB),
    /**
     * Time between two inserts of a lane over all workers, unless a batch is full. After a pause, inserts follow at once. A batch
     * waits four times as long at most. All workers have the same value.
     */
    BATCH_MAX_AGE_MS: count(250),
    /**
     * Bounds of the dead letters of one surface and day. A workspace may have four times as much. Above a bound, requests that
     * cannot be stored are only counted.
     */
    DEAD_LETTER_MAX_BYTES_PER_DAY: count(256 * MIB),
    DEAD_LETTER_MAX_COUNT_PER_DAY: count(100_000),
    /**
     * Heap limit of the process that parses source maps, which this process starts. Its memory is up to 150 MiB more. Half of
     * it is for the map that is parsed: below 1,152 MiB, the largest maps of builds cannot be used. By default half of the heap
     * limit of this process, which Node derives from the memory of the container, and at most 1,152 MiB.
     */
    SYMBOLICATION_HEAP_BYTES: z.coerce
      .number()
      .int()
      .min(MIN_SYMBOLICATION_HEAP_BYTES)
      .max(16 * GIB)
      .optional(),
    /** At most a minute, because lists of findings treat rows that were stored two minutes ago as final. */
    INSERT_TIMEOUT_MS: z.coerce.number().int().min(1).max(60_000).default(60_000),
    /** A job is given to another worker after its worker has not renewed the lock for this long. */
    JOB_LOCK_MS: count(15_000),
    JOB_STALLED_CHECK_MS: count(5_000),
    SWEEP_INTERVAL_MS: count(30_000),
    /** Time between two backups of the directory, in seconds: what can be lost with its Redis. */
    DIRECTORY_BACKUP_INTERVAL_S: z.coerce.number().int().min(60).max(86_400).default(3_600),
    /** Backups of the directory that are kept. By default those of a week. */
    DIRECTORY_BACKUP_KEEP: z.coerce.number().int().min(2).max(10_000).default(168),
    SHUTDOWN_DEADLINE_MS: count(20_000),
  })
  .refine(({ DELIVERY_KEY, PUBLIC_URL }) => DELIVERY_KEY === undefined || PUBLIC_URL !== undefined, {
    path: ['PUBLIC_URL'],
    error: 'is required with DELIVERY_KEY: alerts link to the console there',
  })
/** Validated settings of the workers process. */
export type WorkersConfig = Readonly<z.infer<typeof workersConfigSchema>>

/** Returns what is wrong with the value of `--pools`, or undefined. */
export function faultOfPools(pools: string | undefined): string | undefined {
  const unknown = pools?.split(',').find(name => !poolNameSchema.safeParse(name).success)
  return unknown === undefined ? undefined : `--pools names ${JSON.stringify(unknown)}, which is none of the pools`
}

/** Returns the pools that a valid `--pools traces,dead-letters` names, each once, or all pools without it. */
export function poolsOf(pools: string | undefined): readonly PoolName[] {
  return pools === undefined ? POOL_NAMES : POOL_NAMES.filter(name => pools.split(',').includes(name))
}

/** Returns the bounds of the dead letters of one surface and day. */
export function letterLimits(config: WorkersConfig): LetterLimits {
  return { maxBytes: config.DEAD_LETTER_MAX_BYTES_PER_DAY, maxLetters: config.DEAD_LETTER_MAX_COUNT_PER_DAY }
}

/** Returns the heap limit of the process that parses source maps, in a process whose own heap limit is `ownLimitBytes`. */
export function symbolicationHeapBytes(config: WorkersConfig, ownLimitBytes: number): number {
  const fitting = Math.min(Math.max(ownLimitBytes / 2, MIN_SYMBOLICATION_HEAP_BYTES), FULL_SYMBOLICATION_HEAP_BYTES)
  return config.SYMBOLICATION_HEAP_BYTES ?? fitting
}

/** Returns the BullMQ options of a pool with this many jobs in progress. */
export function poolOptions(config: WorkersConfig, concurrency: number): PoolOptions {
  return { concurrency, lockMs: config.JOB_LOCK_MS, stalledCheckMs: config.JOB_STALLED_CHECK_MS }
}
