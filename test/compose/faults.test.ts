import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ClickHouseClient, createClickHouse } from '../../clickhouse/client.ts'
import { onOneServer } from '../../shared/queue/partitions/connections.ts'
import { type Clients, startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import { runFaults } from '../support/chaos/run-faults.ts'
import { type Composition, startComposition } from '../support/containers/composition.ts'
import { PROCESS_CONTAINER_FAULTS, SERVER_CONTAINER_FAULTS } from '../support/containers/container-faults.ts'

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
let control: Redis

beforeAll(async () => {
  composition = await startComposition()
  clickhouse = createClickHouse({ url: composition.clickhouseUrl, database: 'penstock' })
  redis = connect(composition.redisUrl)
  control = connect(composition.controlRedisUrl)
})

afterAll(async () => {
  await clients?.stop()
  redis?.disconnect()
  control?.disconnect()
  await clickhouse?.close()
  await composition?.stop()
})

function connect(url: string): Redis {
  const connected = new Redis(url, { maxRetriesPerRequest: null })
  connected.on('error', () => {}) // the server is killed again and again
  return connected
}

it('after lost, paused and disconnected containers, what is stored is what the ledger of the clients states', async () => {
  console.log(`${MINUTES} minutes of faults; to repeat them: CHAOS_SEED=${SEED}`)
  const { secrets, s3, url } = composition
  clients = startClients({ edgeUrls: [url], secrets, seed: SEED, rate: RATE })
  const { ledger, builds } = clients
  const forMs = MINUTES * 60_000
  const counts = await Promise.all([
    runFaults(composition, PROCESS_CONTAINER_FAULTS, { seed: SEED, forMs, print: text => console.log(text) }),
    runFaults(composition, SERVER_CONTAINER_FAULTS, { seed: SEED + 1, forMs, print: text => console.log(text) }),
  ])
  const faults = Object.assign({}, ...counts) as Record<string, number>
  console.log(`faults: ${JSON.stringify(faults)}`)

  await clients.untilServed(RECOVERY_DEADLINE_MS)
  await clients.stop()
  for (const build of builds.sent) {
    if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
  }
  console.log(`ledger: ${JSON.stringify(ledger.summary())}, builds: ${builds.sent.length}`)
  console.log(`answers: ${JSON.stringify(ledger.answers())}`)
  await untilSettled({ queues: onOneServer(redis) }, SETTLE_DEADLINE_MS)
  expect(await compareLedger({ secrets, s3, clickhouse, redis, control }, ledger, builds.sent)).toEqual([])
  expect(Object.keys(ledger.answers()).filter(answer => /^5/.test(answer) && answer !== '503')).toEqual([])
  const total = Object.values(faults).reduce((sum, count) => sum + count, 0)
  expect(total).toBeGreaterThanOrEqual(LEAST_FAULTS_PER_MINUTE * MINUTES)
})
