import { type RedisOptions as AllOptions, Redis } from 'ioredis'
import type { ClusterAddress, HostPort } from '../../runtime/redis/redis-group.ts'

/** Connections that are opened together, as after a failover, share one answer. */
const KEEP_MS = 100
const CONNECT_TIMEOUT_MS = 1_000

/** Options without the one that changes the types of replies. */
type RedisOptions = Omit<AllOptions, 'replyMapping'>

/** A range of slots with its master. */
interface SlotRange {
  readonly first: number
  readonly last: number
  readonly master: HostPort
}

/**
 * The masters of the slots of a Redis Cluster. It is asked whenever a connection is opened, each time another node, because one
 * that is cut off would give its old view again and again.
 */
export class ClusterMap {
  readonly #address: ClusterAddress
  #nodes: readonly HostPort[]
  #asked = 0
  #ranges: Promise<readonly SlotRange[]> | undefined

  constructor(address: ClusterAddress) {
    this.#address = address
    this.#nodes = address.nodes
  }

  /** Returns credentials and transport of connections to any node. */
  get access(): RedisOptions {
    return accessOf(this.#address)
  }

  /** Returns the master of a slot. Throws if no node responds, or the slot has none. */
  async masterOf(slot: number): Promise<HostPort> {
    if (this.#ranges === undefined) {
      this.#ranges = this.#read()
      const forget = () => {
        this.#ranges = undefined
      }
      this.#ranges.then(() => setTimeout(forget, KEEP_MS).unref(), forget)
    }
    const range = (await this.#ranges).find(({ first, last }) => slot >= first && slot <= last)
    if (range === undefined) throw new Error(`slot ${slot} of the cluster has no master`)
    return range.master
  }

  async #read(): Promise<readonly SlotRange[]> {
    const nodes = this.#nodes
    let cause: unknown
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[this.#asked++ % nodes.length] as HostPort
      try {
        return await this.#ask(node)
      } catch (error) {
        cause = error
      }
    }
    this.#nodes = [...this.#address.nodes]
    throw new Error('no node of the cluster has answered', { cause })
  }

  async #ask(node: HostPort): Promise<readonly SlotRange[]> {
    const redis = new Redis({
      ...this.access,
      ...node,
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      commandTimeout: CONNECT_TIMEOUT_MS,
      retryStrategy: () => null,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
    })
    // `connect` and `call` reject with it.
    redis.on('error', () => {})
    try {
      await redis.connect()
      const reply = (await redis.call('CLUSTER', 'SLOTS')) as [number, number, ...[string | null, number][]][]
      const hostOf = (host: string | null) => host || node.host
      const found = new Map<string, HostPort>()
      const ranges = reply.map(([first, last, ...members]) => {
        for (const [host, port] of members) found.set(`${hostOf(host)}:${port}`, { host: hostOf(host), port })
        const [host, port] = members[0] ?? [null, 0]
        return { first, last, master: { host: hostOf(host), port } }
      })
      if (ranges.length === 0) throw new Error('the node knows no slots')
      this.#nodes = [...found.values()]
      return ranges
    } finally {
      redis.disconnect()
    }
  }
}

/** Returns the options of ioredis for the credentials and the transport of an address. */
export function accessOf({
  username,
  password,
  tls,
}: Pick<ClusterAddress, 'username' | 'password' | 'tls'>): RedisOptions {
  return { ...(username && { username }), ...(password && { password }), ...(tls && { tls }) }
}
