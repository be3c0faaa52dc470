import { Redis } from 'ioredis'
import { errorFields } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'

/**
 * A connection for producers: fails at once instead of queueing, and never sends a command twice. A command whose
 * answer is lost may or may not have run; its caller must answer "unavailable", not guess.
 */
export function connectProducer(url: string, commandTimeoutMs: number, logger: Logger): Redis {
  return withErrorLog(
    new Redis(url, {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      commandTimeout: commandTimeoutMs,
      connectTimeout: 2_000,
      retryStrategy: attempt => Math.min(50 * attempt, 1_000),
    }),
    logger,
  )
}

/** A connection for consumers (BullMQ workers): waits for Redis to come back, for as long as it takes. */
export function connectConsumer(url: string, logger: Logger): Redis {
  return withErrorLog(
    new Redis(url, {
      maxRetriesPerRequest: null,
      connectTimeout: 5_000,
      retryStrategy: attempt => Math.min(100 * attempt, 2_000),
    }),
    logger,
  )
}

/** One line when the connection breaks and one when it is back, not one per attempt. */
function withErrorLog(redis: Redis, logger: Logger): Redis {
  let broken = false
  redis.on('error', error => {
    if (!broken) logger.warn(errorFields(error), 'redis connection failed')
    broken = true
  })
  redis.on('ready', () => {
    if (broken) logger.info('redis connection is back')
    broken = false
  })
  return redis
}
