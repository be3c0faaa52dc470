import type { Redis } from 'ioredis'
import { createDirectory, type Directory } from '../shared/directory/directory.ts'
import { connectProducer } from '../shared/queue/redis.ts'
import { TransientError } from '../shared/runtime/errors.ts'
import { withDeadline } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { DirectoryConfig } from './config.ts'

/** The directory alone, and the Redis that it is in. */
export interface DirectoryConnection {
  readonly redis: Redis
  readonly store: Directory
}

const CONNECT_TIMEOUT_MS = 5_000
const COMMAND_TIMEOUT_MS = 10_000

/** Runs a command on the directory, and lets go of it when it has settled. Throws a TransientError when Redis is away. */
export async function withDirectory<T>(
  config: DirectoryConfig,
  logger: Logger,
  run: (directory: DirectoryConnection) => Promise<T>,
): Promise<T> {
  const redis = connectProducer(config.CONTROL_REDIS_URL ?? config.REDIS_URL, COMMAND_TIMEOUT_MS, logger)
  try {
    await untilReady(redis)
    return await run({ redis, store: createDirectory(redis) })
  } finally {
    redis.disconnect()
  }
}

/** Attempts that fail are made again until then; why the last one failed is told. */
function untilReady(redis: Redis): Promise<void> {
  let reason = ''
  redis.on('error', error => {
    reason = `: ${error.message || error.name}`
  })
  const ready = new Promise<void>(resolve => {
    redis.once('ready', resolve)
  })
  return withDeadline(ready, CONNECT_TIMEOUT_MS, 'late').catch(error => {
    throw new TransientError(`Redis did not answer within ${CONNECT_TIMEOUT_MS} ms${reason}`, { cause: error })
  })
}
