import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../../clickhouse/client.ts'
import type { LineLog } from '../../../deploy/local/processes/child-process.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { IMAGE_MALLOC } from '../containers/image-malloc.ts'
import { type Stack, startStack } from '../services/stack.ts'
import { Attacker } from './attacker.ts'
import { type ContainerReport, ContainerWatch } from './container.ts'
import { MachineShare } from './machine-share.ts'
import { addTenant } from './tenants.ts'
import { Victim, type VictimReport } from './victim.ts'

/** Memory of the container of each process. */
const CONTAINER_MIB = { edge: 256, workers: 512, api: 256 } as const
const NAMES = ['edge', 'workers', 'api'] as const
/** Node gives its heap about half the memory of a container. */
const HEAP_SHARE = 0.5
/**
 * Settings for processes of this size, as an operator would choose them. A commit has longer than by default, because attackers,
 * victims, stores and service share two cores: on a slow machine, 0.8 s pass without any fault of the service.
 */
const SETTINGS = { HELD_BODY_BYTES: String(64 * MIB), COMMIT_TIMEOUT_MS: '3000', LOG_LEVEL: 'error' }

/**
 * Longest time from acceptance until a payload of a client that does nothing wrong can be read, on a machine that does
 * nothing else.
 */
const STORED_WITHIN_MS = 10_000
/** Share of the machine below which commits miss their deadline without an attack. */
const CALM_SHARE = 0.5
/** How long victims send before an attack begins and after it ends. */
const CALM_MS = 1_500
const STORE_DEADLINE_MS = 90_000
const TURN_MS = 100

/** Experiences of the victims and the processes during an attack. */
export interface AttackReport {
  readonly victims: readonly VictimReport[]
  readonly containers: readonly ContainerReport[]
  /** Part of the machine that other programs left to the attack, from 0.1 to 1. */
  readonly machineShare: number
}

/** The service in small containers, with an attacker and two clients that do nothing wrong. */
export interface SmallService {
  readonly stack: Stack
  readonly clickhouse: ClickHouseClient
  /** Holder of the keys of a surface. */
  readonly attacker: Attacker
  /** Another surface of the attacker's workspace, and one of another workspace. */
  readonly others: readonly [Attacker, Attacker]
  /** Runs an attack while another surface of its workspace and another workspace are served. */
  during(attack: () => Promise<void>): Promise<AttackReport>
  stop(): Promise<void>
}

/** Options of `startSmallService`. */
interface SmallServiceOptions {
  readonly settings?: Readonly<Record<string, string>>
  /** `maxmemory` of Redis. */
  readonly redisMaxMemory?: string
  /** Receives the output of the processes. */
  readonly log?: LineLog
}

/** Starts every process with the memory of a small container. */
export async function startSmallService({
  settings = {},
  redisMaxMemory = '1gb',
  log,
}: SmallServiceOptions = {}): Promise<SmallService> {
  const heap = (name: keyof typeof CONTAINER_MIB) => ({
    ...IMAGE_MALLOC,
    NODE_OPTIONS: `--max-old-space-size=${CONTAINER_MIB[name] * HEAP_SHARE}`,
  })
  const stack = await startStack(
    { ...SETTINGS, ...settings },
    {
      services: { redisMaxMemory },
      ...(log && { log }),
      perProcess: { edge: heap('edge'), workers: heap('workers'), api: heap('api') },
    },
  )
  const clickhouse = createClickHouse({ url: stack.services.clickhouseUrl, database: 'penstock' })
  const redis = new Redis(stack.services.redisUrl)
  const directory = createDirectory(redis)
  const attackers = await addTenant(directory, stack.secrets)
  const neighbour = await addTenant(directory, stack.secrets, attackers)
  const other = await addTenant(directory, stack.secrets)
  redis.disconnect()
  const addresses = { edgeUrl: stack.ingestUrl, apiUrl: stack.apiUrl }

  return {
    stack,
    clickhouse,
    attacker: new Attacker(addresses, attackers),
    others: [new Attacker(addresses, neighbour), new Attacker(addresses, other)],
    async during(attack) {
      // A test that made its bodies for seconds has not seen yet which connections the servers closed meanwhile. fetch
      // would send the first requests of the victims on them.
      await delay(1)
      // As a platform does with a container: a process that one attack has ended fails neither the next attack nor a second run.
      for (const name of NAMES) await stack[name].restart()
      const watch = new ContainerWatch(
        NAMES.map(name => ({
          name,
          pid: stack[name].pid,
          limitBytes: CONTAINER_MIB[name] * MIB,
        })),
      )
      const share = new MachineShare()
      // The service closes connections that are idle while a test makes bodies. A turn lets the clients see that.
      await delay(TURN_MS)
      const victims = [
        new Victim('another surface of the workspace', addresses, neighbour, clickhouse),
        new Victim('another workspace', addresses, other, clickhouse),
      ]
      try {
        await delay(CALM_MS)
        await attack()
        await delay(CALM_MS)
      } finally {
        watch.stop()
      }
      // Requests that only a process that has ended would store are not waited for.
      const deadlineMs = watch.hasEnded ? 0 : STORE_DEADLINE_MS
      const reports = await Promise.all(victims.map(victim => victim.end(deadlineMs)))
      const report = { victims: reports, containers: watch.reports(), machineShare: share.left() }
      console.log(summary(report))
      return report
    },
    async stop() {
      await clickhouse.close()
      await stack.stop()
    },
  }
}

/** Expects that no process ended, no other client was refused anything, and all of their data was stored in seconds. */
export function expectUnharmed(report: AttackReport): void {
  expectServed(report)
  for (const { name, storedWithinMs } of report.victims) {
    expect(storedWithinMs, name).toBeLessThan(STORED_WITHIN_MS / report.machineShare)
  }
}

/** Expects that no process ended, no other client was refused anything, and all of their data was stored. */
export function expectServed(report: AttackReport): void {
  for (const { name, refused } of report.victims) {
    const counted = report.machineShare >= CALM_SHARE ? refused : withoutLateCommits(refused)
    expect({ name, refused: counted }).toEqual({ name, refused: {} })
  }
  expectAlive(report)
}

/** Leaves out the answers to commits that missed their deadline, and to sockets that timed out. Reads have ten seconds. */
function withoutLateCommits(refused: Readonly<Record<string, number>>): Record<string, number> {
  const isLate = (outcome: string) => / (503|[A-Z_a-z]+)$/.test(outcome) && !outcome.startsWith('findings ')
  return Object.fromEntries(Object.entries(refused).filter(([outcome]) => !isLate(outcome)))
}

/** Expects that no process ended, and that everything that other clients could send was stored once. */
export function expectAlive({ victims, containers }: AttackReport): void {
  const ended = containers.filter(container => container.ended !== undefined).map(({ name, ended: why }) => [name, why])
  expect(Object.fromEntries(ended)).toEqual({})
  for (const { name, miscounted } of victims) expect({ name, miscounted }).toEqual({ name, miscounted: {} })
}

function summary({ victims, containers, machineShare }: AttackReport): string {
  const peaks = containers.map(({ name, peakMib, ended }) => `${name} ${peakMib} MiB${ended ? ` (${ended})` : ''}`)
  const clients = victims.map(
    ({ name, sent, refused, slowestMs, storedWithinMs, miscounted }) =>
      `${name}: ${sent} sent, refused ${JSON.stringify(refused)}, slowest ${slowestMs} ms, ` +
      `stored within ${storedWithinMs} ms, miscounted ${JSON.stringify(miscounted)}`,
  )
  return [`peaks: ${peaks.join(', ')}; ${Math.round(100 * machineShare)} % of the machine`, ...clients].join('\n')
}
