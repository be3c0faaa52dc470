import { setTimeout as delay } from 'node:timers/promises'
import type { Fault } from '../chaos/faults.ts'
import type { Random } from '../payloads/scramble-message.ts'
import { until } from '../until.ts'
import type { Composition, ServiceName } from './composition.ts'
import { docker } from './engine.ts'

const PAUSE_DEADLINE_MS = 30_000

type Print = (text: string) => void
type Run = (composition: Composition, service: ServiceName, random: Random, print: Print) => Promise<void>

const PROCESSES: readonly ServiceName[] = ['edge', 'workers-telemetry', 'workers-rest', 'workers-deliveries']
const SERVERS: readonly ServiceName[] = ['redis', 'directory', 'clickhouse', 's3']

/** Faults of the containers of processes, one of which happens at a time. */
export const PROCESS_CONTAINER_FAULTS: readonly Fault<Composition>[] = [
  ofContainer('process: lost', PROCESSES, lost),
  ofContainer('process: paused', PROCESSES, paused),
  ofContainer('process: no network', PROCESSES, cut),
  ofContainer('process: stopped', PROCESSES, stopped),
]

/** Faults of the containers of servers, one of which happens at a time. */
export const SERVER_CONTAINER_FAULTS: readonly Fault<Composition>[] = SERVERS.flatMap(server => [
  ofContainer(`${server}: lost`, [server], lost),
  ofContainer(`${server}: paused`, [server], paused),
  ofContainer(`${server}: no network`, [server], cut),
])

function ofContainer(kind: string, services: readonly ServiceName[], run: Run): Fault<Composition> {
  return { kind, run: (composition, random, print) => run(composition, pick(services, random), random, print) }
}

async function lost(composition: Composition, service: ServiceName, random: Random, print: Print): Promise<void> {
  const [name, ms] = [pick(composition.containers(service), random), between(random, 0, 2_000)]
  print(`${name} is killed, and started again after ${ms} ms`)
  await docker('kill', name)
  await delay(ms)
  await composition.start(name)
}

async function stopped(composition: Composition, service: ServiceName, random: Random, print: Print): Promise<void> {
  const name = pick(composition.containers(service), random)
  print(`${name} is stopped and started again`)
  await docker('stop', '-t', '10', name)
  await composition.start(name)
}

/** Longer than the lock of a job half of the time, so that another worker takes over what a paused one continues later. */
async function paused(composition: Composition, service: ServiceName, random: Random, print: Print): Promise<void> {
  const [name, ms] = [pick(composition.containers(service), random), between(random, 300, 5_000)]
  print(`${name} is paused for ${ms} ms`)
  await pause(name)
  await delay(ms)
  await docker('unpause', name)
}

/** Pauses a container. Without cgroups v2, the engine gives up on one that is too busy to be frozen. */
async function pause(name: string): Promise<void> {
  const isPaused = () =>
    docker('pause', name).then(
      () => true,
      error => {
        if (String(error).includes('unable to freeze')) return false
        throw error
      },
    )
  await until(`${name} is paused`, isPaused, { deadlineMs: PAUSE_DEADLINE_MS, everyMs: 200 })
}

/** Nothing arrives at the container, and what it sends arrives nowhere. No connection is closed. */
async function cut(composition: Composition, service: ServiceName, random: Random, print: Print): Promise<void> {
  const [name, ms] = [pick(composition.containers(service), random), between(random, 300, 6_000)]
  const network = `${composition.project}_stores`
  print(`${name} has no network for ${ms} ms`)
  await docker('network', 'disconnect', network, name)
  await delay(ms)
  await docker('network', 'connect', '--alias', service, network, name)
}

function between(random: Random, least: number, most: number): number {
  return Math.round(least + random() * (most - least))
}

function pick<T>(items: readonly T[], random: Random): T {
  return items[Math.floor(random() * items.length)] as T
}
