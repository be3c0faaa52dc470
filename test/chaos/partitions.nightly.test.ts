import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROOT } from '../../deploy/local/config.ts'
import { freePort } from '../../deploy/local/ports.ts'
import { startRedis } from '../../deploy/local/stores/redis.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import { type Balancer, startBalancer } from '../support/chaos/balancer.ts'
import { startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import { type ChaosProcess, type Installation, startInstallation } from '../support/chaos/installation.ts'
import { keepRestartable, SERVER_PASSWORD, type TestService } from '../support/services/services.ts'
import { until } from '../support/until.ts'

const MINUTES = Number(process.env.CHAOS_MINUTES || 1)
const SEED = Number(process.env.CHAOS_SEED || Math.floor(Math.random() * 2 ** 31))
/** Requests per second of each kind of payload. */
const RATE = 4
const STAY_MS = 3_000
const SERVED_DEADLINE_MS = 60_000
const SETTLE_DEADLINE_MS = 120_000
const EIGHT = [0, 1, 2, 3, 4, 5, 6, 7]

let dir: string
let redis: TestService

// Without a proxy: one for hundreds of connections would be slower than all processes.
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-partitions-'))
  const port = await freePort()
  redis = await keepRestartable(() => startRedis({ dir, port, password: SERVER_PASSWORD, log: () => {} }))
})

afterAll(async () => {
  await redis?.kill9()
  await rm(dir, { recursive: true, force: true, maxRetries: 3 })
})

it('raising the partitions from 2 to 8 and lowering them, while pools come and go, keeps the ledger', async () => {
  console.log(`to repeat: CHAOS_SEED=${SEED}`)
  // Each of the 140 consumers of a process with 8 partitions looks for stalled jobs.
  const settings = { QUEUE_PARTITIONS: '2', JOB_STALLED_CHECK_MS: '2000' }
  const installation = await startInstallation({ edges: 2, workers: 2, settings, queuesUrl: redis.url })
  const balancer = await startBalancer()
  try {
    let edges = installation.edges
    for (const { member } of edges) balancer.add(member.port as number)
    const clients = startClients({ edgeUrls: [balancer.url], secrets: installation.secrets, seed: SEED, rate: RATE })
    const { ledger, builds } = clients
    await clients.untilServed(SERVED_DEADLINE_MS)
    const endsAt = performance.now() + MINUTES * MINUTE_MS
    do {
      for (const partitions of ['8', '2']) {
        const startedAt = performance.now()
        edges = await rollIn(installation, balancer, edges, partitions)
        const pool = await installation.startProcess('workers', `workers beside ${partitions} partitions`, ROOT)
        await clients.untilServed(SERVED_DEADLINE_MS)
        if (partitions === '8') await untilAllAccept(installation)
        await delay(STAY_MS)
        await pool.member.kill9()
        const tookS = Math.round((performance.now() - startedAt) / 1_000)
        console.log(`${partitions} partitions, after ${tookS} s: ${JSON.stringify(ledger.answers())}`)
      }
    } while (performance.now() < endsAt)
    await clients.untilServed(SERVED_DEADLINE_MS)
    await clients.stop()
    for (const build of builds.sent) {
      if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
    }
    await untilSettled(installation, SETTLE_DEADLINE_MS)
    console.log(`ledger: ${JSON.stringify(ledger.summary())}, builds: ${builds.sent.length}`)
    expect((await installation.queues.read()).numbers).toEqual(EIGHT)
    expect(await compareLedger(installation, ledger, builds.sent)).toEqual([])
    expect(installation.unexpectedEnds()).toEqual([])
  } finally {
    await balancer.close()
    await installation.stop()
  }
})

/** Replaces one edge after the other by one with this number of partitions. */
async function rollIn(
  installation: Installation,
  balancer: Balancer,
  running: readonly ChaosProcess[],
  partitions: string,
): Promise<ChaosProcess[]> {
  const replaced: ChaosProcess[] = []
  for (const { member } of running) {
    const name = `edge with ${partitions} partitions`
    const next = await installation.startProcess('edge', name, ROOT, { QUEUE_PARTITIONS: partitions })
    balancer.add(next.member.port as number)
    await balancer.drain(member.port as number)
    await member.stop()
    replaced.push(next)
  }
  return replaced
}

/** Waits until every partition has accepted a request, of whatever queue. */
async function untilAllAccept({ queues }: Installation): Promise<void> {
  await until(
    'each partition has accepted requests',
    async () => {
      const counts = await Promise.all(
        EIGHT.flatMap(partition =>
          (['traces', 'logs', 'metrics'] as const).map(name => {
            const { redis, keys } = queues.at(name, partition)
            return redis.hget(keys.flow, 'acceptedPayloads')
          }),
        ),
      )
      return EIGHT.every(partition => counts.slice(3 * partition, 3 * partition + 3).some(Number))
    },
    { deadlineMs: 60_000, everyMs: 200 },
  )
}
