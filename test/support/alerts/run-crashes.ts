import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Finding } from '../../../schemas/http/findings/schemas.ts'
import { DEFAULT_SPIKING } from '../../../schemas/records/alerts.ts'
import { pagesOf } from '../../../shared/concurrency/pages.ts'
import { upkeepKeys } from '../../../shared/directory/record.ts'
import { startMember } from '../chaos/member.ts'
import { type Random, seededRandom } from '../payloads/scramble-message.ts'
import { until } from '../until.ts'
import type { AlertsStage } from './alerts-stage.ts'
import { CallLedger } from './call-ledger.ts'

/** The kinds of events that a run causes. Spikes are measured minutes later. */
export const CRASH_KINDS = ['finding.created', 'finding.changed', 'finding.regressed'] as const
export const SPIKING = 'finding.spiking'
/** A run of kills. */
interface CrashPlan {
  readonly kills: number
  /** New findings. Every third is resolved and comes back in another version. */
  readonly findings: number
  /** Whether every tenth spikes at once. */
  readonly isSpiking: boolean
}

/** A process or server that is killed and started again. */
interface Victim {
  readonly name: string
  kill9(): Promise<void>
  restart(): Promise<void>
}

const FINDINGS_OF_REQUEST = 25
const CHANGES_AT_ONCE = 4
/** Longest time until a kill, and until the victim is started again. */
const [BEFORE_MS, AWAY_MS] = [1_500, 1_000]
/** Share of the kills that wait until the newest findings call. Others come before anything was found of them. */
const WAITING_SHARE = 0.5
/** Time without a new event after which those that are missing are lost. Spikes wait for five minutes until failures are judged. */
const STANDSTILL_MS = 400_000

/**
 * Kills workers, Redis and ClickHouse while findings are new, are resolved and come back, and waits until nothing is left to call
 * for. Returns the ledger of what was caused and received.
 */
export async function runCrashes(stage: AlertsStage, { kills, findings, isSpiking }: CrashPlan): Promise<CallLedger> {
  // Victims and moments follow from it; how long a restart takes does not.
  const seed = Number(process.env.CRASH_SEED || Math.floor(Math.random() * 2 ** 32))
  print(`CRASH_SEED=${seed}`)
  const random = seededRandom(seed)
  const ledger = new CallLedger(stage)
  const { services, workers, env } = stage.stack
  const second = await startMember('workers/main.ts', definedOf(env))
  const redis = new Redis(services.redisUrl)
  try {
    const victims = victimsOf(stage, second, redis)
    const types = Array.from({ length: findings }, (_, i) => `Kind${i}`)
    const bursts = [...pagesOf(types, Math.ceil(findings / kills))]
    const killing = async () => {
      for (const [i, burst] of bursts.entries()) {
        const sending = sendNew(stage, ledger, burst, isSpiking)
        if (random() < WAITING_SHARE) await untilCalled(ledger, burst)
        await Promise.all([sending, killOne(victims, random, text => print(`${i + 1} of ${kills}: ${text}`))])
      }
      print(`the last kill was survived, ${ledger.events} events in ${ledger.messages} messages so far`)
    }
    const thirds = types.filter((_, i) => i % 3 === 0)
    let isOver = false
    const returning = returnFindings(stage, ledger, thirds, () => isOver)
    await Promise.all([killing().finally(() => (isOver = true)), returning])
    await untilNothingComes(ledger, redis)
    print(`${ledger.events} events in ${ledger.messages} messages`)
    return ledger
  } finally {
    redis.disconnect()
    await Promise.all([second.stop(), workers.restart()])
  }
}

const startedAt = performance.now()
const print = (text: string) => console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1)} s: ${text}`)

/** Workers, which watch and deliver, are half of the victims. */
function victimsOf({ stack }: AlertsStage, second: Victim | Awaited<ReturnType<typeof startMember>>, redis: Redis) {
  // A killed process leaves its lease to another one after 15 s, in which nothing would be found. Here at once.
  const ofWorkers = (name: string, { kill9, restart }: Pick<Victim, 'kill9' | 'restart'>): Victim => ({
    name,
    async kill9() {
      await kill9()
      await redis.del(upkeepKeys.lease('alerts'))
    },
    restart,
  })
  const { redis: redisServer, clickhouse } = stack.services
  return [
    ofWorkers('workers 1', stack.workers),
    ofWorkers('workers 2', second),
    { name: 'Redis', kill9: () => redisServer.kill9(), restart: () => redisServer.restart() },
    { name: 'ClickHouse', kill9: () => clickhouse.kill9(), restart: () => clickhouse.restart() },
  ] satisfies Victim[]
}

async function killOne(victims: readonly Victim[], random: Random, print: (text: string) => void): Promise<void> {
  const victim = victims[Math.floor(random() * victims.length)] as Victim
  const [beforeMs, awayMs] = [Math.round(random() * BEFORE_MS), Math.round(random() * AWAY_MS)]
  await delay(beforeMs)
  await victim.kill9()
  await delay(awayMs)
  await victim.restart()
  print(`kill -9 of ${victim.name} after ${beforeMs} ms, started again after ${awayMs} ms`)
}

async function sendNew(
  stage: AlertsStage,
  ledger: CallLedger,
  types: readonly string[],
  isSpiking: boolean,
): Promise<void> {
  for (const some of pagesOf(types, FINDINGS_OF_REQUEST)) {
    const spiking = isSpiking ? some.filter(type => type.endsWith('9')) : []
    const others = some.filter(type => !spiking.includes(type))
    await untilDone('new findings are accepted', () => stage.throwErrors(others))
    if (spiking.length > 0) {
      await untilDone('spikes are accepted', () => stage.throwErrors(spiking, { times: DEFAULT_SPIKING.atLeast }))
    }
    ledger.cause('finding.created', some)
    ledger.cause(SPIKING, spiking)
  }
}

/**
 * Resolves findings as soon as they were called for, and lets them occur in another version. Gives up if nothing calls after the
 * last kill: the ledger has what is missing then.
 */
async function returnFindings(
  stage: AlertsStage,
  ledger: CallLedger,
  types: readonly string[],
  isOver: () => boolean,
): Promise<void> {
  const waiting = new Set(types)
  while (waiting.size > 0) {
    const ready = await until(
      'findings are called for',
      () => {
        const some = [...waiting].filter(type => ledger.findingOf('finding.created', type) !== undefined)
        return some.length > 0 ? some.slice(0, FINDINGS_OF_REQUEST) : undefined
      },
      { deadlineMs: STANDSTILL_MS, everyMs: 100 },
    ).catch(() => [])
    if (ready.length === 0 && isOver()) return
    for (const some of pagesOf(ready, CHANGES_AT_ONCE))
      await Promise.all(some.map(type => resolve(stage, ledger, type)))
    if (ready.length > 0) {
      await untilDone('returning findings are accepted', () => stage.throwErrors(ready, { version: '2.0' }))
    }
    ledger.cause('finding.regressed', ready)
    for (const type of ready) waiting.delete(type)
  }
}

/** Resolves a finding once: a request whose answer was lost may have resolved it. */
async function resolve(stage: AlertsStage, ledger: CallLedger, type: string): Promise<void> {
  const path = `/v3/findings/${ledger.findingOf('finding.created', type)}`
  await untilDone(`${type} is resolved`, async () => {
    const { body } = await stage.ask(`GET ${path}`)
    if ((body as { readonly finding?: Pick<Finding, 'status'> }).finding?.status === 'resolved') return
    const { status } = await stage.ask(`PATCH ${path}`, { status: 'resolved' })
    if (status !== 200) throw new Error(`${path} was answered with ${status}`)
  })
  ledger.cause('finding.changed', [type])
}

/** Repeats a request until it succeeds, as a client does whose server is unavailable. */
async function untilDone(what: string, request: () => Promise<void>): Promise<void> {
  let last: unknown
  const attempt = () =>
    request().then(
      () => true,
      (error: unknown) => {
        last = error
        return false
      },
    )
  await until(what, attempt, { deadlineMs: STANDSTILL_MS, everyMs: 50 }).catch(cause => {
    throw new Error(`${what}: ${last}`, { cause })
  })
}

/** Waits until the receiver has got an event about one of these findings. */
async function untilCalled(ledger: CallLedger, types: readonly string[]): Promise<void> {
  const isCalled = () => types.some(type => ledger.findingOf('finding.created', type) !== undefined)
  await until('new findings are called for', isCalled, { deadlineMs: STANDSTILL_MS })
}

/** Waits until everything that was caused has arrived, or nothing does any more, and until no delivery is left. */
async function untilNothingComes(ledger: CallLedger, redis: Redis): Promise<void> {
  for (let before = -1; ledger.faults().lost.length > 0 && ledger.events > before; ) {
    before = ledger.events
    const isMoving = () => ledger.events > before || ledger.faults().lost.length === 0
    await until('another event arrives', isMoving, { deadlineMs: STANDSTILL_MS, everyMs: 100 }).catch(() => {})
  }
  const queue = upkeepKeys.lease('deliveries')
  await until(
    'no delivery is left',
    async () => {
      const counts = await redis
        .pipeline()
        .llen(upkeepKeys.occasions)
        .llen(`${queue}:wait`)
        .llen(`${queue}:active`)
        .zcard(`${queue}:delayed`)
        .exec()
      return counts?.every(([error, count]) => error === null && count === 0)
    },
    { deadlineMs: STANDSTILL_MS, everyMs: 100 },
  )
}

function definedOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
