import type { Redis } from 'ioredis'
import { durabilityFault } from '../../shared/queue/durability.ts'
import { readAofSettings } from '../../shared/queue/durability-watch.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import type { DurabilitySettings } from '../../shared/runtime/config.ts'
import type { Examined } from '../command-context.ts'
import { counted } from '../terminal.ts'
import { type Finding, found } from './check.ts'

/** Scripts have the flags of Redis 7 (`#!lua`). */
const MIN_MAJOR = 7
/** The edge admits nothing above this share of `maxmemory`. */
const FULL_SHARE = 0.7

/** Examines each server of the queues: its version, its memory, and whether it keeps what it confirms. */
export async function checkQueueServers({ queues, config }: Examined): Promise<Finding[]> {
  const infos = await infosOfServers(await queues())
  const several = infos.length > 1
  return infos.map(({ info, aof }, i) => judgeServer(info, aof, config, several ? `server ${i + 1}: ` : ''))
}

/** Examines the Redis of the directory. Its writes wait for no replica. */
export async function checkDirectoryServer({ directory, config }: Examined): Promise<Finding[]> {
  const { redis } = await directory()
  const promise =
    config.REDIS_DURABILITY === 'replicated' ? ({ ...config, REDIS_DURABILITY: 'fsync' } as const) : config
  const [info, aof] = await Promise.all([redis.info(), readAofSettings(redis)])
  return [judgeServer(info, aof, promise, '')]
}

/** Returns the connections to the servers of the queues, one for each server. */
export async function queueServers(queues: Queues): Promise<Redis[]> {
  return (await infosOfServers(queues)).map(({ redis }) => redis)
}

async function infosOfServers(queues: Queues) {
  const { all } = await queues.read()
  const connections = [...new Set(all.map(({ redis }) => redis))]
  const read = await Promise.all(
    connections.map(async redis => {
      const [info, aof] = await Promise.all([redis.info(), readAofSettings(redis)])
      return { redis, info, aof, id: field(info, 'run_id') }
    }),
  )
  // The connections of a cluster are to slots, several of which are on one server.
  return [...new Map(read.map(server => [server.id, server])).values()]
}

/** Returns the finding about a server, from the reply of INFO and what CONFIG has. */
export function judgeServer(
  info: string,
  aof: Parameters<typeof durabilityFault>[1],
  promise: DurabilitySettings,
  prefix: string,
): Finding {
  const version = field(info, 'redis_version')
  if (Number(version.split('.', 1)[0]) < MIN_MAJOR) {
    return found.fault(`${prefix}Redis ${version} is too old: ${MIN_MAJOR}.0 or later is needed`)
  }
  const reason = durabilityFault(info, aof, promise)
  if (reason !== undefined) return found.fault(`${prefix}${reason}`)
  const [used, max] = [Number(field(info, 'used_memory')), Number(field(info, 'maxmemory'))]
  const share = max > 0 ? used / max : 0
  const memory = max > 0 ? `, ${Math.round(100 * share)} % of its memory used` : ''
  if (share > FULL_SHARE) {
    return found.warning(`${prefix}Redis ${version}${memory}: nothing is accepted above ${100 * FULL_SHARE} %`)
  }
  if (promise.REDIS_DURABILITY === 'unchecked') {
    return found.warning(
      `${prefix}Redis ${version}${memory}; REDIS_DURABILITY=unchecked, so its settings are not checked`,
    )
  }
  const replicas =
    promise.REDIS_DURABILITY === 'replicated' ? ` on ${counted(promise.REDIS_MIN_REPLICAS + 1, 'server')}` : ''
  return found.ok(`${prefix}Redis ${version} keeps what it confirms${replicas}${memory}`)
}

function field(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''
}
