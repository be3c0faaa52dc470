import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../deploy/local/ports.ts'
import { startRedis } from '../../deploy/local/stores/redis.ts'
import { SERVER_PASSWORD } from './services/services.ts'
import { until } from './until.ts'

/** A primary and its replica behind one address, like a name that is moved at a failover. */
export interface RedisPair {
  /** The address that leads new connections to the primary. Open connections stay where they are. */
  readonly url: string
  /** Administrative connection to the server that is, or was, the primary. */
  readonly primary: Redis
  readonly replica: Redis
  /** Holds back what the primary sends to its replica, whose connection stays open. */
  holdReplication(): void
  /** Lets the replica receive it again. */
  resumeReplication(): void
  /** Makes the replica the primary, as it is, and the primary its replica. No connection of a client is closed. */
  promote(): Promise<void>
  stop(): Promise<void>
}

/** Starts both servers, with the replica in step. */
export async function startRedisPair(): Promise<RedisPair> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-pair-'))
  const ports = [await freePort(), await freePort()] as const
  const options = { password: SERVER_PASSWORD, log: () => {} }
  const servers = await Promise.all(
    ports.map(port => startRedis({ ...options, dir: join(dir, String(port)), port, maxMemory: '1gb' })),
  )
  const [primary, replica] = servers.map(({ url }) => new Redis(url)) as [Redis, Redis]
  const [clients, link] = [await startRelay(ports[0]), await startRelay(ports[0])]
  for (const redis of [primary, replica]) await redis.config('SET', 'masterauth', SERVER_PASSWORD)
  await replica.replicaof('127.0.0.1', link.port)
  await until('the replica is in step', async () => /slave0:.*state=online/.test(await primary.info('replication')))

  return {
    url: `redis://default:${SERVER_PASSWORD}@127.0.0.1:${clients.port}`,
    primary,
    replica,
    holdReplication: () => link.hold(),
    resumeReplication: () => link.resume(),
    async promote() {
      clients.leadTo(ports[1])
      await replica.replicaof('NO', 'ONE')
      await primary.replicaof('127.0.0.1', ports[1])
      await until('the old primary follows', async () =>
        /slave0:.*state=online/.test(await replica.info('replication')),
      )
    },
    async stop() {
      for (const redis of [primary, replica]) redis.disconnect()
      await Promise.all([clients.close(), link.close()])
      await Promise.all(servers.map(server => server.stop()))
      await rm(dir, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** A relay of connections to a port of this machine. */
export interface Relay {
  readonly port: number
  /** Leads new connections to another port. */
  leadTo(port: number): void
  /** Holds back what the target sends. */
  hold(): void
  /** Lets it through again. */
  resume(): void
  close(): Promise<void>
}

/** Starts a relay to a port of this machine. */
export async function startRelay(firstTarget: number): Promise<Relay> {
  let target = firstTarget
  let isHeld = false
  const sockets = new Set<Socket>()
  const upstreams = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect({ host: '127.0.0.1', port: target })
    upstreams.add(upstream)
    client.pipe(upstream)
    upstream.pipe(client)
    if (isHeld) upstream.unpipe(client).pause()
    upstream.on('resumed', () => upstream.pipe(client))
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        upstreams.delete(upstream)
        client.destroy()
        upstream.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(port) {
      target = port
    },
    hold() {
      isHeld = true
      for (const upstream of upstreams) upstream.unpipe().pause()
    },
    resume() {
      isHeld = false
      for (const upstream of upstreams) upstream.emit('resumed')
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
