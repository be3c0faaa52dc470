import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { type Clients, startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import type { Fault } from '../support/chaos/faults.ts'
import type { LedgerEntry } from '../support/chaos/ledger.ts'
import { runFaults } from '../support/chaos/run-faults.ts'
import { type Composition, startComposition } from '../support/containers/composition.ts'
import { PROCESS_CONTAINER_FAULTS, SERVER_CONTAINER_FAULTS } from '../support/containers/container-faults.ts'
import { onOneServer } from '../support/queue-on.ts'

const MINUTES = Number(process.env.CHAOS_MINUTES || 5)
const SEED = Number(process.env.CHAOS_SEED || Math.floor(Math.random() * 2 ** 31))
const LEAST_FAULTS_PER_MINUTE = 6
/** Requests per second of each kind of payload. */
const RATE = 5
const RECOVERY_DEADLINE_MS = 90_000
const SETTLE_DEADLINE_MS = 180_000

let composition: Composition
let clients: Clients
let clickhouse: ClickHouseClient
let redis: Redis
let directory: Redis

beforeAll(async () => {
  composition = await startComposition()
  clickhouse = createClickHouse({ url: composition.clickhouseUrl, database: 'penstock' })
  redis = connect(composition.redisUrl)
  directory = connect(composition.directoryRedisUrl)
})

afterAll(async () => {
  await clients?.stop()
  redis?.disconnect()
  directory?.disconnect()
  await clickhouse?.close()
  await composition?.stop()
})

function connect(url: string): Redis {
  const connected = new Redis(url, { maxRetriesPerRequest: null })
  connected.on('error', () => {}) // the server is killed again and again
  return connected
}

/** Entries of the ledger that clients sent during a fault, from one index to another. */
interface FaultTime {
  readonly kind: string
  readonly first: number
  readonly end: number
}

/**
 * Returns a line with the shares of all answers during each kind of fault, the worst first, and during the time without one. A
 * process and a server have faults at the same time, so that a request may count for two: compare the kinds of both lists.
 */
function sharesByFault(entries: readonly LedgerEntry[], times: readonly FaultTime[]): string[] {
  const kinds = Map.groupBy(times, ({ kind }) => kind)
  const during = [...kinds].map(([kind, own]) => ({
    name: `${kind} (${own.length})`,
    sent: own.flatMap(({ first, end }) => entries.slice(first, end)),
  }))
  const between = entries.filter((_, i) => !times.some(({ first, end }) => first <= i && i < end))
  const shareOf = (sent: readonly LedgerEntry[], answer: string) =>
    sent.filter(entry => entry.answer === answer).length / Math.max(1, sent.length)
  const lineOf = (name: string, sent: readonly LedgerEntry[]) => {
    const answers = [...new Set(sent.map(({ answer }) => answer))].sort()
    const shares = answers.map(answer => `${answer} ${(100 * shareOf(sent, answer)).toFixed(1)} %`)
    return `answers, ${name}: ${sent.length} requests, ${shares.join(', ')}`
  }
  return [
    lineOf('in all', entries),
    lineOf('without a fault', between),
    ...during
      .toSorted((a, b) => shareOf(b.sent, '503') - shareOf(a.sent, '503'))
      .map(({ name, sent }) => lineOf(name, sent)),
  ]
}

it('after lost, paused and disconnected containers, what is stored is what the ledger of the clients states', async () => {
  console.log(`${MINUTES} minutes of faults; to repeat them: CHAOS_SEED=${SEED}`)
  const { secrets, s3, url } = composition
  clients = startClients({ edgeUrls: [url], secrets, seed: SEED, rate: RATE })
  const { ledger, builds } = clients
  const forMs = MINUTES * MINUTE_MS
  const print = (text: string) => console.log(text)
  const times: FaultTime[] = []
  const noted = (fault: Fault<Composition>): Fault<Composition> => ({
    ...fault,
    async run(...args) {
      const first = ledger.entries.length
      await fault.run(...args)
      times.push({ kind: fault.kind, first, end: ledger.entries.length })
    },
  })
  const counts = await Promise.all([
    runFaults(composition, PROCESS_CONTAINER_FAULTS.map(noted), { seed: SEED, forMs, print }),
    runFaults(composition, SERVER_CONTAINER_FAULTS.map(noted), { seed: SEED + 1, forMs, print }),
  ])
  const faults = Object.assign({}, ...counts) as Record<string, number>
  console.log(`faults: ${JSON.stringify(faults)}`)

  await clients.untilServed(RECOVERY_DEADLINE_MS)
  await clients.stop()
  for (const build of builds.sent) {
    if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
  }
  console.log(`ledger: ${JSON.stringify(ledger.summary())}, builds: ${builds.sent.length}`)
  for (const line of sharesByFault(ledger.entries, times)) console.log(line)
  await untilSettled({ queues: onOneServer(redis) }, SETTLE_DEADLINE_MS)
  expect(await compareLedger({ secrets, s3, clickhouse, redis, directory }, ledger, builds.sent)).toEqual([])
  expect(Object.keys(ledger.answers()).filter(answer => /^5/.test(answer) && answer !== '503')).toEqual([])
  const total = Object.values(faults).reduce((sum, count) => sum + count, 0)
  expect(total).toBeGreaterThanOrEqual(LEAST_FAULTS_PER_MINUTE * MINUTES)
})
