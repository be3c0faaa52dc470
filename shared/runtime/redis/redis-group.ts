import type { ConnectionOptions } from 'node:tls'
import { readRedisAddress } from './redis-address.ts'

/** Host and port of a server. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Credentials and transport of connections to Redis. */
interface Access {
  readonly username?: string
  readonly password?: string
  /** Absent for plain text. */
  readonly tls?: ConnectionOptions
}

/** A Redis behind Sentinel, whose primary has the name. */
interface SentinelAddress extends Access {
  readonly kind: 'sentinel'
  readonly nodes: readonly HostPort[]
  readonly name: string
  /** Password of the Sentinels themselves. */
  readonly sentinelPassword?: string
}

/** A Redis Cluster, of which some nodes are known. */
export interface ClusterAddress extends Access {
  readonly kind: 'cluster'
  readonly nodes: readonly HostPort[]
}

/** An address of Redis: one server, or a group of servers that decides itself which of them is the primary. */
export type RedisTarget = { readonly kind: 'server'; readonly url: string } | SentinelAddress | ClusterAddress

const PORTS = { sentinel: 26_379, cluster: 6_379 } as const
const GROUP = /^(rediss?)\+(sentinel|cluster):\/\/(?:([^@]*)@)?([^/?#@]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/

/**
 * Parses `redis://` and `rediss://` URLs, and those of groups: `redis+sentinel://:password@a:26379,b:26379/name` and
 * `redis+cluster://user:password@a:6379,b:6379`. Returns undefined if the text is none of them.
 */
export function parseRedisTarget(text: string): RedisTarget | undefined {
  if (/^rediss?:\/\//.test(text))
    return URL.canParse(text) && !text.includes(',') ? { kind: 'server', url: text } : undefined
  const [, scheme, kind, userInfo = '', hosts = '', path = '', query = ''] = GROUP.exec(text) ?? []
  if (kind !== 'sentinel' && kind !== 'cluster') return undefined
  const nodes = hosts.split(',').map(host => parseHost(host, PORTS[kind]))
  if (!nodes.every(node => node !== undefined)) return undefined
  const access = { ...parseUserInfo(userInfo), ...(scheme === 'rediss' && { tls: tlsOf(query) }) }
  const sentinelPassword = new URLSearchParams(query).get('sentinelPassword') ?? undefined
  if (kind === 'cluster') return path === '' ? { kind, nodes, ...access } : undefined
  if (path === '') return undefined
  const ofSentinels = sentinelPassword === undefined ? {} : { sentinelPassword }
  return { kind, nodes, name: decodeURIComponent(path), ...access, ...ofSentinels }
}

/** Returns the options of TLS with the files that a query names (`readRedisAddress`). Each node has its own name. */
function tlsOf(query: string): ConnectionOptions {
  const { servername, ...tls } = readRedisAddress(`rediss://node?${query}`).tls ?? {}
  return tls
}

function parseHost(text: string, defaultPort: number): HostPort | undefined {
  const match = /^(\[[0-9a-f:]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(text)
  const [, host, port = defaultPort] = match ?? []
  return host === undefined ? undefined : { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

function parseUserInfo(text: string): { username?: string; password?: string } {
  if (text === '') return {}
  const [username = '', password] = text.split(/:(.*)/)
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== undefined && password !== '' && { password: decodeURIComponent(password) }),
  }
}
