import type { Redis } from 'ioredis'
import type { ClickHouseClient } from '../clickhouse/client.ts'
import { createDirectory } from '../shared/directory/directory.ts'
import { Queues } from '../shared/queue/queues.ts'
import { type ConnectTo, connectForTransaction, connectProducer, usableWhenFull } from '../shared/queue/redis.ts'
import { ConfigError } from '../shared/runtime/config.ts'
import { errorMessage, TransientError } from '../shared/runtime/errors.ts'
import { withDeadline } from '../shared/runtime/lifecycle.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { BackupConnection, DirectoryConnection, Examined, Stores } from './command-context.ts'
import type { BackupConfig, CliConfig, ClickHouseConfig, DirectoryConfig, QueuesConfig } from './config.ts'

const CONNECT_TIMEOUT_MS = 5_000
const COMMAND_TIMEOUT_MS = 10_000
/** Redis runs a million commands of a transaction in a few seconds. */
const TRANSACTION_TIMEOUT_MS = 300_000
/** A mutation rewrites the deletion marks of every part that it touches. */
const CLICKHOUSE_TIMEOUT_MS = 600_000

/**
 * Runs a command on the directory and closes the connection when the command has settled. Throws a TransientError if
 * Redis is unavailable.
 */
export async function withDirectory<T>(
  config: DirectoryConfig,
  logger: Logger,
  run: (directory: DirectoryConnection) => Promise<T>,
): Promise<T> {
  return withRedis(connectTo(config.DIRECTORY_REDIS_URL, logger), redis =>
    run({
      redis,
      store: createDirectory(redis),
      withQueues: work => withQueues(config, logger, work),
      retentionDays: config.RETENTION_DAYS,
    }),
  )
}

/**
 * Runs a command on the queues and closes the connections when the command has settled. Throws a TransientError if Redis is
 * unavailable.
 */
export function withQueues<T>(
  config: Pick<QueuesConfig, 'REDIS_URL'>,
  logger: Logger,
  run: (queues: Queues) => Promise<T>,
): Promise<T> {
  const queues = new Queues(config.REDIS_URL, to => usableWhenFull(connectTo(to, logger)))
  return withRedis(queues.common, () => run(queues)).finally(() => queues.close())
}

const connectTo = (to: ConnectTo, logger: Logger) => connectProducer(to, COMMAND_TIMEOUT_MS, logger)

async function withRedis<T>(redis: Redis, run: (redis: Redis) => Promise<T>): Promise<T> {
  try {
    await untilReady(redis)
    return await run(redis)
  } finally {
    redis.disconnect()
  }
}

/**
 * Runs a command on all stores and closes their connections when the command has settled. Throws a TransientError if
 * Redis is unavailable.
 */
export function withStores<T>(config: CliConfig, logger: Logger, run: (stores: Stores) => Promise<T>): Promise<T> {
  return withDirectory(config, logger, async directory => {
    // Only one command needs these clients, and loading them takes longer than most commands take.
    const [{ connectClickHouse }, { connectObjectStore }] = await Promise.all([
      import('../clickhouse/connect.ts'),
      import('../shared/object-store/object-store.ts'),
    ])
    const clickhouse = connectClickHouse(config, { requestTimeoutMs: CLICKHOUSE_TIMEOUT_MS })
    const objects = connectObjectStore(config)
    try {
      return await run({ ...directory, clickhouse, objects })
    } finally {
      objects.close()
      await clickhouse.close()
    }
  })
}

/**
 * Runs a command on the stores, none of which needs to answer, and closes the connections when it has settled. Throws a
 * ConfigError if the addresses of ClickHouse are not those of one cluster.
 */
export async function withInstallation<T>(
  { config, env }: Pick<Examined, 'config' | 'env'>,
  logger: Logger,
  run: (examined: Examined) => Promise<T>,
): Promise<T> {
  const [{ connectClickHouse }, { connectObjectStore }] = await Promise.all([
    import('../clickhouse/connect.ts'),
    import('../shared/object-store/object-store.ts'),
  ])
  const clickhouse = opened(() => connectClickHouse(config, { requestTimeoutMs: COMMAND_TIMEOUT_MS }))
  const connect = (to: ConnectTo) => connectProducer(to, COMMAND_TIMEOUT_MS, logger)
  const directory = connect(config.DIRECTORY_REDIS_URL)
  const queues = new Queues(config.REDIS_URL, connect)
  const objects = connectObjectStore(config, COMMAND_TIMEOUT_MS)
  const [isDirectoryReady, areQueuesReady] = [untilReady(directory), untilReady(queues.common)]
  // A check that never asks for them must not leave a rejection behind.
  for (const ready of [isDirectoryReady, areQueuesReady]) ready.catch(() => undefined)
  try {
    return await run({
      ...{ config, env, objects, now: Date.now, clickhouse },
      queues: () => areQueuesReady.then(() => queues),
      directory: () => isDirectoryReady.then(() => ({ redis: directory, store: createDirectory(directory) })),
    })
  } finally {
    directory.disconnect()
    queues.close()
    objects.close()
    await clickhouse.close()
  }
}

/** Runs a command on ClickHouse and closes the connection when the command has settled. */
export async function withClickHouse<T>(
  config: ClickHouseConfig,
  run: (clickhouse: ClickHouseClient) => Promise<T>,
): Promise<T> {
  const { connectClickHouse } = await import('../clickhouse/connect.ts')
  const clickhouse = connectClickHouse(config)
  try {
    return await run(clickhouse)
  } finally {
    await clickhouse.close()
  }
}

/** Runs a command on the directory and its backups, and closes the connections when the command has settled. */
export function withBackups<T>(
  config: BackupConfig,
  logger: Logger,
  run: (connection: BackupConnection) => Promise<T>,
): Promise<T> {
  return withDirectory(config, logger, async directory => {
    const [{ Backups }, { connectObjectStore }] = await Promise.all([
      import('../shared/backup/backups.ts'),
      import('../shared/object-store/object-store.ts'),
    ])
    const objects = connectObjectStore(config)
    const withTransaction: BackupConnection['withTransaction'] = work =>
      withRedis(connectForTransaction(config.DIRECTORY_REDIS_URL, TRANSACTION_TIMEOUT_MS, logger), work)
    try {
      return await run({
        ...directory,
        backups: new Backups({ objects, key: config.DIRECTORY_BACKUP_KEY, now: Date.now }),
        withTransaction,
      })
    } finally {
      objects.close()
    }
  })
}

/** Opens a client, which connects later. It throws for settings that contradict each other. */
function opened<T>(open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw new ConfigError(errorMessage(error), { cause: error })
  }
}

/** A client that repeats failed attempts does so until the timeout. The error then names the last cause. */
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
