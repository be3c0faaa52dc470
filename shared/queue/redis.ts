import { Redis, type RedisOptions } from 'ioredis'
import { errorFields } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { readRedisAddress } from '../runtime/redis-address.ts'

/**
 * Errors of a server that is a replica, or is becoming one. The address may lead to another server by now, and ioredis
 * itself keeps a connection for as long as it is open.
 */
const FROM_REPLICA = /^(?:READONLY|UNBLOCKED|MASTERDOWN)\b/

/**
 * Connects a producer. Commands fail at once instead of waiting for the connection, and are never sent twice. A command
 * whose reply was lost may have run, so its caller must report "unavailable".
 */
export function connectProducer(url: string, commandTimeoutMs: number, logger: Logger): Redis {
  return withErrorLog(
    openRedis(url, {
      ...failingAtOnce(commandTimeoutMs),
      reconnectOnError: error => FROM_REPLICA.test(error.message),
      retryStrategy: attempt => Math.min(50 * attempt, 1_000),
    }),
    logger,
  )
}

/**
 * Connects for a transaction of several requests (WATCH, MULTI). The connection is never made again, because commands that
 * follow on another one would run at once, outside of the transaction. Once it is lost, all commands fail.
 */
export function connectForTransaction(url: string, commandTimeoutMs: number, logger: Logger): Redis {
  return withErrorLog(
    openRedis(url, {
      ...failingAtOnce(commandTimeoutMs),
      reconnectOnError: () => false,
      retryStrategy: () => null,
    }),
    logger,
  )
}

/**
 * Connects a consumer (a BullMQ worker). Its commands wait without limit until Redis is available again. A command that a
 * replica has refused is sent again on the next connection.
 */
export function connectConsumer(url: string, logger: Logger): Redis {
  return withErrorLog(
    openRedis(url, {
      maxRetriesPerRequest: null,
      reconnectOnError: error => (FROM_REPLICA.test(error.message) ? 2 : false),
      connectTimeout: 5_000,
      retryStrategy: attempt => Math.min(100 * attempt, 2_000),
    }),
    logger,
  )
}

/** Opens a connection to an address, with the files of its TLS. */
function openRedis(address: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const { url, tls } = readRedisAddress(address)
  return new Redis(url, { ...options, ...(tls && { tls }) })
}

/** Options with which commands fail at once instead of waiting for the connection, and are never sent twice. */
function failingAtOnce(commandTimeout: number) {
  return {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout,
    connectTimeout: 2_000,
  } as const
}

/** Logs one line when the connection fails and one when it is back, instead of one for each attempt. */
function withErrorLog(redis: Redis, logger: Logger): Redis {
  // Each lane of each partition that a connection serves listens to it. Not 0, which means the same to Node.js: BullMQ adds
  // 3 for each queue to what stands here, and 3 is a limit.
  redis.setMaxListeners(Infinity)
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
