import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../../../deploy/local/ports.ts'
import { startChild } from '../../../deploy/local/processes/child-process.ts'
import { endWithThisProcess, startRedis } from '../../../deploy/local/stores/redis.ts'
import { keepRestartable, SERVER_PASSWORD, type TestService } from '../services/services.ts'
import { until } from '../until.ts'
import { FaultProxy } from './fault-proxy.ts'

/** A Redis server of a pair, and the network through which the other one and Sentinel reach it. */
interface RedisNode {
  readonly name: string
  readonly service: TestService
  readonly address: FaultProxy
}

/** Two Redis servers, of which Sentinel promotes the replica when the primary is down. */
export interface SentinelRedis {
  /** Address for processes that ask Sentinel themselves. */
  readonly url: string
  /** The server that Sentinel names as the primary. */
  readonly primary: RedisNode
  /** Leads this link to the primary, now and after each promotion. */
  follow(link: FaultProxy): void
  /** Makes Sentinel promote the replica though the primary works. */
  failover(): Promise<void>
  stop(): Promise<void>
}

const NAME = 'penstock'
/** Time without an answer after which Sentinel promotes the replica. */
const DOWN_AFTER_MS = 1_500
const POLL_MS = 50

/** Starts both servers with their data in `redis` and `redis-2` of this directory, and Sentinel. */
export async function startSentinelRedis(dir: string): Promise<SentinelRedis> {
  let primary: RedisNode | undefined
  const first = await startNode('redis', dir, () => primary)
  primary = first
  const second = await startNode('redis-2', dir, () => primary)
  const nodes = [first, second]
  const sentinel = await startSentinel(dir, first.address.port)
  const links: FaultProxy[] = []

  const client = new Redis({ port: sentinel.port, maxRetriesPerRequest: null })
  client.on('error', () => {})
  const poll = async () => {
    const [, port] = ((await client.call('SENTINEL', 'get-master-addr-by-name', NAME)) as string[] | null) ?? []
    const named = nodes.find(({ address }) => String(address.port) === port)
    if (named === undefined || named === primary) return
    primary = named
    for (const link of links) link.retarget(portOf(named))
  }
  // Sentinel looks for replicas every ten seconds.
  await until('Sentinel knows the replica', async () => {
    const [info] = [(await client.call('SENTINEL', 'replicas', NAME)) as unknown[]]
    return info?.length === 1
  })
  let polling: Promise<void> | undefined
  const timer = setInterval(() => {
    polling ??= poll().finally(() => {
      polling = undefined
    })
  }, POLL_MS)
  return {
    url: `redis+sentinel://default:${SERVER_PASSWORD}@127.0.0.1:${sentinel.port}/${NAME}`,
    get primary() {
      return primary as RedisNode
    },
    follow(link) {
      links.push(link)
      link.retarget(portOf(primary as RedisNode))
    },
    async failover() {
      await client.call('SENTINEL', 'failover', NAME)
    },
    async stop() {
      clearInterval(timer)
      await polling
      client.disconnect()
      await sentinel.stop()
      for (const { service, address } of nodes) {
        await service.kill9()
        await address.close()
      }
    },
  }
}

const portOf = ({ service }: RedisNode) => Number(new URL(service.url).port)

/** Starts a replica that is never promoted. Returns the function that ends it. */
export async function startReplica(dir: string, primaryUrl: string): Promise<() => Promise<void>> {
  const service = await startRedis({ dir, port: await freePort(), password: SERVER_PASSWORD, log: () => {} })
  const redis = new Redis(service.url)
  await redis.config('SET', 'masterauth', SERVER_PASSWORD)
  await redis.replicaof('127.0.0.1', Number(new URL(primaryUrl).port))
  redis.disconnect()
  return () => service.kill9()
}

/** Starts a server that is the replica of the primary if it is not the primary itself, also when it is started again. */
async function startNode(name: string, dir: string, primary: () => RedisNode | undefined): Promise<RedisNode> {
  const port = await freePort()
  const address = await FaultProxy.start(port)
  const service = await keepRestartable(async () => {
    const log = (line: string) => process.env.STACK_LOG && console.log(`${name} ${line}`)
    const started = await startRedis({ dir: join(dir, name), port, password: SERVER_PASSWORD, log })
    const redis = new Redis(started.url)
    await redis.config('SET', 'masterauth', SERVER_PASSWORD)
    await redis.config('SET', 'replica-announce-ip', '127.0.0.1')
    await redis.config('SET', 'replica-announce-port', address.port)
    await redis.config('SET', 'repl-diskless-sync-delay', 0)
    const other = primary()
    if (other !== undefined && other.name !== name) await redis.replicaof('127.0.0.1', other.address.port)
    redis.disconnect()
    return started
  })
  return { name, service, address }
}

async function startSentinel(dir: string, primaryPort: number) {
  const port = await freePort()
  const directory = join(dir, 'sentinel')
  await mkdir(directory)
  const file = join(directory, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${directory}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 1`,
    `sentinel auth-pass ${NAME} ${SERVER_PASSWORD}`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    // A second promotion has to wait for twice this time.
    `sentinel failover-timeout ${NAME} 3000`,
  ]
  await writeFile(file, `${lines.join('\n')}\n`)
  const child = await startChild({
    command: 'redis-server',
    args: [file, '--sentinel'],
    log: line => process.env.STACK_LOG && console.log(`sentinel ${line}`),
  })
  endWithThisProcess(child.pid, child.exited)
  return { port, stop: () => child.kill9() }
}
