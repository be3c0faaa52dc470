import { z } from 'zod'
import { type QueueName, queueNameSchema } from '../schemas/queues/names.ts'
import {
  clickhouseSettings,
  count,
  objectStoreSettings,
  port,
  processSettings,
  redisSettings,
} from '../shared/runtime/config.ts'

export const workersConfigSchema = z.object({
  ...processSettings,
  ...redisSettings,
  ...clickhouseSettings,
  ...objectStoreSettings,
  WORKERS_ADMIN_PORT: port(4302),
  /** Jobs that one pool holds at a time. */
  POOL_CONCURRENCY: count(256),
  BATCH_MAX_ROWS: count(100_000),
  BATCH_MAX_BYTES: count(32 * 1024 * 1024),
  BATCH_MAX_AGE_MS: count(250),
  BATCH_CONCURRENT_INSERTS: count(2),
  POOL_FETCHED_BYTES: count(8 * 1024 * 1024),
  /** Jobs of replay chunks at a time, and their bytes. */
  REPLAY_CONCURRENCY: count(8),
  REPLAY_HELD_BYTES: count(32 * 1024 * 1024),
  /** Jobs of source maps and their parts at a time, and their bytes; a whole map of 64 MiB is let in alone. */
  SOURCE_MAPS_CONCURRENCY: count(8),
  SOURCE_MAPS_HELD_BYTES: count(32 * 1024 * 1024),
  /** Completions at a time, each of which looks at 16 maps at once, and the bytes of their bodies. */
  COMPLETIONS_CONCURRENCY: count(4),
  COMPLETIONS_HELD_BYTES: count(16 * 1024 * 1024),
  /** Parsed source maps that are kept, in bytes of memory. */
  SYMBOLICATION_CACHE_BYTES: count(256 * 1024 * 1024),
  /** At most a minute: lists of findings take what was stored two minutes ago for settled. */
  INSERT_TIMEOUT_MS: z.coerce.number().int().min(1).max(60_000).default(60_000),
  /** A job whose worker has been silent for so long is given to another. */
  JOB_LOCK_MS: count(15_000),
  JOB_STALLED_CHECK_MS: count(5_000),
  SWEEP_INTERVAL_MS: count(30_000),
  SHUTDOWN_DEADLINE_MS: count(20_000),
})
export type WorkersConfig = Readonly<z.infer<typeof workersConfigSchema>>

/** `--pools spans,dead-letters` names what this process works on; without it, everything. */
export function poolsFromArguments(args: readonly string[], all: readonly QueueName[]): QueueName[] {
  const flag = args.findIndex(arg => arg === '--pools' || arg.startsWith('--pools='))
  if (flag < 0) return [...all]
  const names = args[flag]?.split('=')[1] ?? args[flag + 1] ?? ''
  return z.array(queueNameSchema).min(1).parse(names.split(','))
}
