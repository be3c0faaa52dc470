import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AbstractConnector, type RedisOptions as AllOptions, Cluster, type ClusterOptions, Redis } from 'ioredis'
import { errorFields } from '../runtime/errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { readRedisAddress } from '../runtime/redis/redis-address.ts'
import { type ClusterAddress, parseRedisTarget, type RedisTarget } from '../runtime/redis/redis-group.ts'
import { accessOf, type ClusterMap } from './registry/cluster-map.ts'

/** Options without the one that changes the types of replies. */
type RedisOptions = Omit<AllOptions, 'replyMapping'>

/** Options of connections to all masters of a cluster. */
type OptionsOfCluster = Omit<ClusterOptions, 'redisOptions'> & {
  readonly redisOptions?: Pick<RedisOptions, 'commandTimeout' | 'maxRetriesPerRequest'>
}

/** A place to connect to: an address, where that of a cluster means all its masters, or the master of one slot. */
export type ConnectTo = string | RedisTarget | SlotAddress

/** One slot of a Redis Cluster, whose connections lead to its current master. */
interface SlotAddress {
  readonly kind: 'slot'
  readonly map: ClusterMap
  readonly slot: number
}

/**
 * Errors of a server that is a replica, is becoming one, or has not got the slot of a command. The address may lead to another
 * server by now, and ioredis itself keeps a connection for as long as it is open. The command was not run.
 */
const FROM_ANOTHER = /^(?:READONLY|UNBLOCKED|MASTERDOWN|MOVED|ASK|TRYAGAIN|CLUSTERDOWN)\b/

/**
 * A connection on which a reply is due and nothing has arrived for this time is closed and made again. A network can forget a
 * connection without telling its ends, for example when one of them gets another address. Linux alone gives up on what was sent
 * after a quarter of an hour. Longer than the 10 s for which BullMQ lets Redis wait for a job.
 */
export const SILENCE_MS = 15_000

/**
 * Connects a producer. Commands fail at once instead of waiting for the connection, and are never sent twice. A command
 * whose reply was lost may have run, so its caller must report "unavailable".
 */
export function connectProducer(to: ConnectTo, commandTimeoutMs: number, logger: Logger): Redis {
  return withErrorLog(
    open(
      to,
      {
        ...failingAtOnce(commandTimeoutMs),
        reconnectOnError: error => FROM_ANOTHER.test(error.message),
        retryStrategy: attempt => Math.min(50 * attempt, 1_000),
      },
      {
        enableOfflineQueue: false,
        // Commands that were sent are not sent again.
        ...{ retryDelayOnFailover: 0, retryDelayOnClusterDown: 0, retryDelayOnTryAgain: 100 },
        redisOptions: { commandTimeout: commandTimeoutMs },
      },
    ),
    logger,
  )
}

/**
 * Connects for a transaction of several requests (WATCH, MULTI). The connection is never made again, because commands that
 * follow on another one would run at once, outside of the transaction. Once it is lost, all commands fail.
 */
export function connectForTransaction(to: ConnectTo, commandTimeoutMs: number, logger: Logger): Redis {
  return withErrorLog(
    open(to, {
      ...failingAtOnce(commandTimeoutMs),
      reconnectOnError: () => false,
      retryStrategy: () => null,
    }),
    logger,
  )
}

/**
 * Connects a consumer (a BullMQ worker). Its commands wait without limit until Redis is available again. A command that another
 * server than the master of its keys has refused is sent again on the next connection.
 */
export function connectConsumer(to: ConnectTo, logger: Logger): Redis {
  return withErrorLog(
    open(
      to,
      {
        maxRetriesPerRequest: null,
        reconnectOnError: error => (FROM_ANOTHER.test(error.message) ? 2 : false),
        connectTimeout: 5_000,
        retryStrategy: attempt => Math.min(100 * attempt, 2_000),
      },
      { maxRedirections: 100, redisOptions: { maxRetriesPerRequest: null } },
    ),
    logger,
  )
}

/**
 * Makes BullMQ's scripts on this connection run even if the memory of Redis is full. Taking, finishing and changing jobs is what
 * frees the memory, and needs little of it. Returns the connection.
 */
export function usableWhenFull(connection: Redis): Redis {
  const define = connection.defineCommand.bind(connection)
  connection.defineCommand = (name, script) => define(name, { ...script, lua: `#!lua flags=allow-oom\n${script.lua}` })
  return connection
}

function open(to: ConnectTo, options: RedisOptions, ofCluster: OptionsOfCluster = {}): Redis {
  const address = typeof to === 'string' ? parseRedisTarget(to) : to
  if (address === undefined) throw new RangeError('the address is not that of a Redis')
  if (address.kind === 'cluster') return openCluster(address, ofCluster)
  const redis = create(address, { ...options, socketTimeout: SILENCE_MS })
  // Each of the commands in flight that a former master refuses listens to the end of the connection.
  redis.on('connect', () => redis.stream.setMaxListeners(Infinity))
  return redis
}

/** Its callers use commands with keys of one slot, and events and states that a cluster has as well. */
function openCluster({ nodes, ...access }: ClusterAddress, { redisOptions, ...options }: OptionsOfCluster): Redis {
  const cluster: unknown = new Cluster([...nodes], {
    ...options,
    redisOptions: { ...redisOptions, ...accessOf(access), connectTimeout: 2_000, socketTimeout: SILENCE_MS },
    clusterRetryStrategy: attempt => Math.min(100 * attempt, 1_000),
    slotsRefreshTimeout: 2_000,
  })
  return cluster as Redis
}

function create(address: Exclude<RedisTarget, ClusterAddress> | SlotAddress, options: RedisOptions): Redis {
  if (address.kind === 'server') {
    const { url, tls } = readRedisAddress(address.url)
    return new Redis(url, { ...options, ...(tls && { tls }) })
  }
  if (address.kind === 'slot') return new Redis({ ...options, ...address.map.access, Connector: connectorTo(address) })
  const { nodes, name, sentinelPassword } = address
  return new Redis({
    ...options,
    ...accessOf(address),
    sentinels: [...nodes],
    name,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    sentinelRetryStrategy: attempt => Math.min(100 * attempt, 1_000),
  })
}

/** Returns a connector class that looks the master of the slot up for each connection. */
function connectorTo({ map, slot }: SlotAddress) {
  return class extends AbstractConnector {
    readonly #options: RedisOptions

    constructor(options: unknown) {
      const own = options as RedisOptions
      super(own.disconnectTimeout ?? 2_000)
      this.#options = own
    }

    async connect() {
      this.connecting = true
      const master = await map.masterOf(slot)
      if (!this.connecting) throw new Error('Connection is closed.')
      const { tls } = this.#options
      const socket = tls ? connectTls({ ...tls, ...master }) : connectPlain(master)
      socket.once('error', error => {
        this.firstError = error
      })
      this.stream = socket
      return socket
    }
  }
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
  // Each lane of each queue that a connection serves listens to it. Not 0, which means the same to Node.js: BullMQ adds
  // 3 for each queue to what stands here, and 3 is a limit.
  redis.setMaxListeners(Infinity)
  let broken = false
  redis.on('error', (error: unknown) => {
    if (!broken) logger.warn(errorFields(error), 'redis connection failed')
    broken = true
  })
  redis.on('ready', () => {
    if (broken) logger.info('redis connection is back')
    broken = false
  })
  return redis
}
