import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Random } from '../payloads/scramble-message.ts'
import type { TestService } from '../services/services.ts'
import { until } from '../until.ts'
import type { FaultProxy } from './fault-proxy.ts'
import type { ChaosProcess, ChaosServer, Installation } from './installation.ts'
import type { SentinelRedis } from './sentinel-redis.ts'

/** A fault that was applied and has ended, of an installation of processes by default. */
export interface Fault<I = Installation> {
  /** Kind of the fault, for the counts. */
  readonly kind: string
  /** Applies the fault, prints it, waits and ends it. */
  run(installation: I, random: Random, print: (text: string) => void): Promise<void>
}

/** Kinds of faults of processes and their links, one of which happens at a time. */
export const PROCESS_FAULTS: readonly Fault[] = [
  ofProcess('kill', killed),
  ofProcess('restart', restarted),
  ofProcess('freeze', (process, random, print) => frozen(process.name, process.member.pid, random, print)),
  ofProcess('slow', ({ name, links }, random, print) => slowed(name, linksOf(links, random), random, print)),
  ofProcess('cut', ({ name, links }, random, print) => cut(name, linksOf(links, random), random, print)),
  ofProcess('partition', ({ name, links }, random, print) => held(name, linksOf(links, random), random, print)),
  ofProcess('forgotten', ({ name, links }, random, print) => forgotten(name, linksOf(links, random), print)),
]

/** Kinds of faults of servers, one of which happens at a time. */
export const SERVER_FAULTS: readonly Fault[] = (['redis', 'directory', 'clickhouse', 's3'] as const).flatMap(name => [
  ofServer(name, 'kill', crashed),
  ofServer(name, 'freeze', ({ service }, random, print) => frozen(name, service.pid, random, print)),
  ofServer(name, 'slow', ({ links }, random, print) => slowed(name, toAll(links), random, print)),
  ofServer(name, 'partition', ({ links }, random, print) => held(name, toAll(links), random, print)),
  ofServer(name, 'forgotten', ({ links }, _random, print) => forgotten(name, toAll(links), print)),
  ofServer(name, 'full disk', filled),
])

/** The faults of Redis that are not those of every server. */
export const REDIS_FAULTS: readonly Fault[] = [
  {
    kind: 'redis: full memory',
    async run({ servers }, random, print) {
      const ms = between(random, 500, 3_000)
      print(`redis has no memory left for ${ms} ms`)
      // A connection of its own, because the server may lose its role meanwhile.
      const redis = new Redis(servers.redis.service.url)
      await redis.config('SET', 'maxmemory', '1mb')
      await delay(ms)
      await redis.config('SET', 'maxmemory', '2gb')
      redis.disconnect()
    },
  },
]

/** Promotions of the replica of Redis, which is behind. */
export const PROMOTIONS: readonly Fault[] = [
  ofReplication('crash', async (replication, print) => {
    const { name, service } = replication.primary
    print(`kill -9 of ${name}, whose replica is behind and is promoted`)
    await service.kill9()
    return service
  }),
  ofReplication('failover', async (replication, print) => {
    const { name, service } = replication.primary
    print(`failover from ${name} to its replica, which is behind`)
    await replication.failover()
    return service
  }),
]

type Print = (text: string) => void

function ofProcess(kind: string, run: (process: ChaosProcess, random: Random, print: Print) => Promise<void>): Fault {
  return {
    kind: `process: ${kind}`,
    run({ edges, workers }, random, print) {
      return run(pick([...edges, ...workers], random), random, print)
    },
  }
}

function ofServer(
  name: ChaosServer['name'],
  kind: string,
  run: (server: ChaosServer, random: Random, print: Print) => Promise<void>,
): Fault {
  return { kind: `${name}: ${kind}`, run: ({ servers }, random, print) => run(servers[name], random, print) }
}

function ofReplication(kind: string, run: (replication: SentinelRedis, print: Print) => Promise<TestService>): Fault {
  return {
    kind: `redis: promotion by ${kind}`,
    async run({ replication }, random, print) {
      if (replication === undefined) return
      const { address, name } = replication.primary
      address.slow({ latencyMs: between(random, 300, 600), bytesPerSecond: 1_000_000 })
      await delay(between(random, 500, 1_500))
      const before = await run(replication, print)
      await until(`${name} has a successor`, () => replication.primary.name !== name, { deadlineMs: 30_000 })
      address.heal()
      await before.restart()
    },
  }
}

async function killed({ name, member }: ChaosProcess, random: Random, print: Print): Promise<void> {
  const ms = between(random, 0, 1_500)
  print(`kill -9 of ${name}, started again after ${ms} ms`)
  await member.kill9()
  await delay(ms)
  await member.restart()
}

async function restarted({ name, member }: ChaosProcess, _random: Random, print: Print): Promise<void> {
  print(`restart of ${name}`)
  await member.stop()
  await member.restart()
}

async function crashed({ name, service }: ChaosServer, random: Random, print: Print): Promise<void> {
  const ms = between(random, 0, 2_000)
  print(`kill -9 of ${name}, started again after ${ms} ms`)
  await service.kill9()
  await delay(ms)
  await service.restart()
}

/** Longer than the lock of a job half of the time, so that another worker takes over what a frozen one continues later. */
async function frozen(name: string, pid: number, random: Random, print: Print): Promise<void> {
  const ms = between(random, 300, 5_000)
  print(`SIGSTOP of ${name} for ${ms} ms`)
  process.kill(-pid, 'SIGSTOP')
  await delay(ms)
  process.kill(-pid, 'SIGCONT')
}

async function slowed(name: string, links: Links, random: Random, print: Print): Promise<void> {
  const [latencyMs, bytesPerSecond, ms] = [
    between(random, 20, 400),
    between(random, 50_000, 2_000_000),
    between(random, 1_000, 4_000),
  ]
  print(`${name} has slow ${links.label} for ${ms} ms: ${latencyMs} ms, ${Math.round(bytesPerSecond / 1_000)} kB/s`)
  for (const link of links.proxies) link.slow({ latencyMs, bytesPerSecond })
  await delay(ms)
  for (const link of links.proxies) link.heal()
}

async function cut(name: string, links: Links, random: Random, print: Print): Promise<void> {
  const ms = between(random, 200, 3_000)
  print(`${name} has no ${links.label} for ${ms} ms`)
  for (const link of links.proxies) link.cut()
  await delay(ms)
  for (const link of links.proxies) link.heal()
}

async function held(name: string, links: Links, random: Random, print: Print): Promise<void> {
  const ms = between(random, 300, 6_000)
  const directions = pick([['requests'], ['responses'], ['requests', 'responses']] as const, random)
  const loses = random() < 0.5
  print(
    `${name} is partitioned from its ${links.label} for ${ms} ms: ${directions.join(' and ')} are held, then ${loses ? 'lost' : 'delivered'}`,
  )
  for (const link of links.proxies) link.hold(...directions)
  await delay(ms)
  for (const link of links.proxies) link.heal(loses)
}

async function forgotten(name: string, links: Links, print: Print): Promise<void> {
  print(`the network forgets the ${links.label} of ${name}`)
  for (const link of links.proxies) link.forget()
}

async function filled({ name, disk, service }: ChaosServer, random: Random, print: Print): Promise<void> {
  if (disk === undefined) return
  const ms = between(random, 500, 3_000)
  print(`the disk of ${name} is full for ${ms} ms`)
  await disk.fill()
  await delay(ms)
  await disk.free()
  // Redis ends when it cannot write its log, and is started again as by a supervisor.
  await service.restart()
}

/** Links that fail together. */
interface Links {
  readonly label: string
  readonly proxies: readonly FaultProxy[]
}

const toAll = (proxies: readonly FaultProxy[]): Links => ({ label: 'connections to all processes', proxies })

/** Returns one link of a process, or all of them. */
function linksOf(links: ChaosProcess['links'], random: Random): Links {
  const names = Object.keys(links)
  const name = pick([...names, 'all'], random)
  const link = links[name]
  return link === undefined
    ? { label: 'connections', proxies: Object.values(links) }
    : { label: `connections (${name})`, proxies: [link] }
}

function between(random: Random, least: number, most: number): number {
  return Math.round(least + random() * (most - least))
}

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T
}
