import type { Redis } from 'ioredis'
import type { QueueName } from '../../../schemas/queues/names.ts'
import { withDeadline } from '../../runtime/lifecycle.ts'
import { type PartitionsRead, type QueueConnections, readWith } from '../queues.ts'
import type { ConnectTo } from '../redis.ts'
import type { QueueServers } from './queue-servers.ts'
import { readRegistry } from './registry.ts'

/** How long a read waits for a connection that it opens. */
const OPENED_WITHIN_MS = 2_000

/** How `QueueLinks` connects. */
interface QueueLinksDeps {
  readonly servers: QueueServers
  /** Reaches what belongs to the installation. */
  readonly common: Redis
  /** Opens a connection of the same kind to one server. */
  readonly connect: (to: ConnectTo, server: string) => Redis
}

/** Connections to the servers of the queues, one to each, opened when its first partition is known. */
export class QueueLinks implements QueueConnections {
  readonly common: Redis
  readonly servers: QueueServers
  readonly #connect: QueueLinksDeps['connect']
  readonly #opened = new Map<string, Redis>()

  constructor({ servers, common, connect }: QueueLinksDeps) {
    this.servers = servers
    this.common = common
    this.#connect = connect
    // A cluster has a connection to each slot beside.
    if (servers.isOne) this.#opened.set('0', common)
  }

  get first(): number {
    return this.servers.first
  }

  /** The connections that are open, by the name of the server. */
  get opened(): ReadonlyMap<string, Redis> {
    return this.#opened
  }

  at(queue: QueueName, partition: number): Redis {
    return this.to(this.servers.serverOf(queue, partition))
  }

  /** Returns the connection to a server. */
  to(server: string): Redis {
    let redis = this.#opened.get(server)
    if (redis === undefined) {
      redis = this.#connect(this.servers.addressOf(server), server)
      this.#opened.set(server, redis)
    }
    return redis
  }

  movesTo(queue: QueueName, partition: number): number {
    return this.servers.movesTo(queue, partition)
  }

  async partitions(): Promise<PartitionsRead> {
    const registry = await readRegistry(this.common)
    const read = readWith(this.servers.always, registry)
    if (!this.servers.isOne) {
      const before = this.#opened.size
      const links = new Set(read.numbers.map(partition => this.at('spans', partition)))
      for (const queue of ['source-maps', 'completions'] as const) links.add(this.at(queue, 0))
      if (this.#opened.size > before) await Promise.all([...links].map(untilReady))
    }
    return read
  }

  /** Closes the connections to servers, but not the common one. */
  close(): void {
    for (const redis of this.#opened.values()) if (redis !== this.common) redis.disconnect()
  }
}

/** Waits for a connection that was just opened. The next command fails or waits if it is still not ready. */
async function untilReady(redis: Redis): Promise<void> {
  if (redis.status === 'ready') return
  const ready = new Promise<void>(resolve => {
    redis.once('ready', resolve)
  })
  await withDeadline(ready, OPENED_WITHIN_MS, 'redis is not connected').catch(() => {})
}
